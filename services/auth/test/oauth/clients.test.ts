// Clients: registration, discovery, sign-in and sign-out, and foreign client libraries, in one process.
import "./rfc7591.ts";
import "./registration-errors.ts";
import "./discovery.ts";
import "./openid-connect.ts";
import "./logout.ts";
import "./oauth4webapi.ts";
import "./flows.ts";
