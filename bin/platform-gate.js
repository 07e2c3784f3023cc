#!/usr/bin/env node
// The gateway.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/gate/main");
