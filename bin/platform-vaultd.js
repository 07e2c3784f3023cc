#!/usr/bin/env node
// Object storage.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/vault/main");
