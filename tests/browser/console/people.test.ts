// Topics of tenants, identity's pages, and what a person sees whose role is taken, on one platform.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./tenants.ts";
import "./identity.ts";
import "./revoked.ts";

after(endInstallation);
