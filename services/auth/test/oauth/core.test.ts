// Grants and what protects them, in one process: starting PostgreSQL and loading the core take longer than most tests.
import "./rfc6749.ts";
import "./rfc7636.ts";
import "./rfc8628.ts";
import "./rfc8693.ts";
import "./rfc9126.ts";
import "./rfc9449.ts";
import "./rfc9470.ts";
import "./grants.ts";
import "./direct-grants.ts";
import "./races.ts";
