// Sets, adds and removes fields by the lines of `middleware_config`:
//
//   request set X-Environment production
//   request remove X-Debug
//   response add Cache-Control no-store
import { REQUEST, RESPONSE, addField, config, removeField, reset, setField } from "./handler";

function apply(side: string, kind: u32): void {
  const lines = config().split("\n");
  for (let index = 0; index < lines.length; index++) {
    const words = lines[index].trim().split(" ");
    if (words.length < 3 || words[0] != side) continue;
    const name = words[2];
    const value = words.slice(3).join(" ");
    if (words[1] == "set") setField(kind, name, value);
    else if (words[1] == "add") addField(kind, name, value);
    else if (words[1] == "remove") removeField(kind, name);
  }
}

export function handle_request(): u64 {
  reset();
  apply("request", REQUEST);
  return 1;
}

export function handle_response(context: u32, isError: u32): void {
  reset();
  apply("response", RESPONSE);
}
