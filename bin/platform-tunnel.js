#!/usr/bin/env node
// The tunnel service: relay and client.
import { launch } from "./launch.js";

await launch(import.meta.url, "@platform/tunnel/main");
