#!/usr/bin/env node
// The mail service.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/notify/main");
