// Sets theme, density and language before the first paint; a module would run after it.
{
  let stored = {};
  try {
    stored = JSON.parse(localStorage.getItem("platform.console") ?? "{}");
  } catch {
    // A page without storage uses the defaults.
  }
  const dark =
    stored.theme === "dark" ||
    (stored.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const root = document.documentElement;
  root.dataset.theme = dark ? "dark" : "light";
  root.dataset.density = stored.density === "comfortable" ? "comfortable" : "dense";
}
