// The service that the files of this process declare.
import { Service } from "./service.ts";

/** Filled by the functions of the package's main module: one process is one service. */
export const declared = new Service();
