#!/usr/bin/env node
// The `platform` command line.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/runtime/main");
