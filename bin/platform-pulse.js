#!/usr/bin/env node
// The message broker.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/pulse/main");
