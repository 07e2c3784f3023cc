// Storage's own work and long lists, on one platform. The work comes first: it counts all files of storage.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./storage-work.ts";
import "./storage-list.ts";

after(endInstallation);
