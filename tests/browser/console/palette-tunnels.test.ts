// Tunnels, wrong input, the palette, and hostile text in all services but mail alone, on one platform. The palette comes first: it
// needs a project.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./palette.ts";
import "./tunnels.ts";
import "./german-faults.ts";
import "./hostile/services.ts";
import "./hostile/traffic.ts";

after(endInstallation);
