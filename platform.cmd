@echo off
rem The platform's command line, of this clone: .\platform --help
if not exist "%~dp0node_modules" (
  echo platform: its packages are not installed: run npm ci in %~dp0 1>&2
  exit /b 1
)
node "%~dp0bin\platform.js" %*
