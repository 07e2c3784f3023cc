// Table entry of the sample upstream in examples/hello.
import { formatAddress, nameProgram } from "@platform/kernel/config";
import { getAddress, type ServiceEntry } from "./entry.ts";

/** The sample upstream. */
export const helloEntry: ServiceEntry = {
  name: "hello",
  label: "sample",
  main: new URL("../../../../examples/hello/main.ts", import.meta.url).href,
  listeners: [
    {
      name: "http",
      key: "sample_addr",
      env: "PLATFORM_HELLO_ADDR",
      default: "127.0.0.1:8070",
      description: "Listening address of the sample upstream.",
    },
  ],
  credentials: [],
  routes: [{ prefix: "/hello", stripPrefix: false, open: true, listener: "http" }],
  configure: (context) => ({ args: [formatAddress(getAddress(context, "sample_addr"))], env: {} }),
  describe: () => "examples/hello · behind the gateway at /hello",
  trials: () => [
    {
      command: `${nameProgram("platform")} init ../shop`,
      meaning: "a first project: ./platform up in its folder joins this platform",
    },
  ],
};
