// The flag that names a platform.
import { z } from "zod";
import { key } from "@platform/kernel/config";

/** The data directory. */
export const DATA_KEY = key(z.string().min(1).default("./data"), {
  description: "Data directory of all services.",
  env: ["PLATFORM_DATA_DIR"],
  placeholder: "FOLDER",
});
