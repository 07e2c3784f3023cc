// Keys of the files that workers write: access log and recording.
import { key } from "@platform/kernel/config";
import { bound } from "./bound.ts";
import { BYTES_MAX, filePath, unset } from "./value.ts";

/** Keys of the access log and of the recording. */
export const logKeys = {
  access_log_path: key(unset(filePath()), {
    description: "JSONL file for the requests of routes with access_log.",
    defaultText: "access.jsonl next to the configuration",
  }),
  access_log_max_size: bound("Size that triggers a rotation of the access log.", {
    default: 104_857_600,
    min: 4096,
    max: BYTES_MAX,
    unit: "bytes",
  }),
  access_log_files: bound("Number of rotated access logs to keep.", { default: 5, max: 1000 }),
  record_path: key(unset(filePath()), {
    description: "JSONL file for the exchanges of routes with record.",
    defaultText: "recording.jsonl next to the configuration",
  }),
  record_max_size: bound("Size that triggers a rotation of the recording.", {
    default: 104_857_600,
    min: 4096,
    max: BYTES_MAX,
    unit: "bytes",
  }),
  record_files: bound("Number of rotated recordings to keep.", { default: 5, max: 1000 }),
};
