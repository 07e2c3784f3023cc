// Every case of the identity service, in the order they are run and reported.
import type { BenchCase } from "../harness/case.ts";
import { documents } from "./cases/documents.ts";
import { introspection } from "./cases/introspection.ts";
import { login } from "./cases/login.ts";
import { tokens } from "./cases/tokens.ts";

export const AUTH_CASES: readonly BenchCase[] = [tokens, introspection, documents, login];
