// Preloaded by test processes: makes service files importable.
import { registerServiceFiles } from "./load-hooks.ts";

registerServiceFiles();
