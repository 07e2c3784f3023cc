#!/usr/bin/env node
// The identity service.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/auth/main");
