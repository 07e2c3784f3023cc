// Tunnels, wrong input and the palette, on one platform. The palette comes first: it needs a project.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./palette.ts";
import "./tunnels.ts";
import "./german-faults.ts";

after(endInstallation);
