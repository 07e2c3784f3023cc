// Tasks with keys and people, on one platform.
import { after } from "node:test";
import { endInstallation } from "../installation.ts";
import "./keys.ts";
import "./people.ts";

after(endInstallation);
