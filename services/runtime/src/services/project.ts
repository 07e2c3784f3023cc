// The listener of the project in the working directory.

/** Configuration key of a project's address. */
export const PROJECT_KEY = "project_addr";
/** Default address of the project in the working directory: the port that `platform init` writes. */
export const PROJECT_ADDRESS = "127.0.0.1:3000";
