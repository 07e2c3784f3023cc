// The permission of applications.

/** The permission that applications require: they get rights at all services. */
export const ADD_APPLICATION = "*:*";
