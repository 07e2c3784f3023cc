// First tasks of developers, on one platform with a project: add an application, find addresses, follow a request.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./applications.ts";
import "./addresses.ts";
import "./traces.ts";
import "./try.ts";
import "./models.ts";

after(endInstallation);
