// The documents of the services: they list every route, and the answers of the services are as they say, on one platform.
import { after } from "node:test";
import { endContract } from "./contract-platform.ts";
import "./openapi.ts";
import "./contract-answers.ts";

after(endContract);
