// A small HTTP service with the real lifecycle, for the tests in this folder.
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { addressKey, createServiceKeys, defineConfig, key } from "@platform/kernel/config";
import { explainListenError, runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";

const definition = defineConfig({
  service: "sample",
  program: "sample",
  version: "1.2.3",
  summary: "A sample.",
  keys: {
    addr: addressKey("127.0.0.1:0", { description: "Listen address." }),
    drain_work_ms: key(z.int().min(0).default(0), {
      description: "How long its drain takes.",
      unit: "ms",
    }),
    fail: key(z.enum(["none", "start", "later", "hang"]).default("none"), {
      description: "How it fails.",
    }),
    reload: key(z.boolean().default(false), { description: "Whether SIGHUP reloads." }),
    ...createServiceKeys("sample"),
  },
  commands: { greet: { summary: "Greets.", arguments: ["name"], standalone: true } },
});

await runProgram(definition, {
  greet: ({ positionals }) => {
    process.stdout.write(`hello ${positionals[0]}\n`);
    return 7;
  },
  "": async ({ config }) => {
    const logger = createLogger({ service: "sample", format: "json", level: config.log_level });
    const options = {
      service: "sample",
      version: "1.2.3",
      logger,
      drainTimeoutMs: config.drain_timeout_ms,
    };
    await runService(options, async (lifecycle) => {
      lifecycle.onDrain("database", () => logger.info("database closed"));
      if (config.fail === "hang") {
        logger.info("hanging");
        await new Promise(() => undefined);
      }
      if (config.fail === "start") throw new Error("no luck");
      const server = createServer((_request, response) => response.end("hello"));
      server.listen(config.addr.port, config.addr.host);
      await once(server, "listening").catch(async (error: unknown) => {
        throw await explainListenError(error, config.addr, "--addr");
      });
      const { address, port } = server.address() as AddressInfo;
      lifecycle.reportListener({ name: "http", host: address, port });
      lifecycle.onDrain("http", async ({ deadline }) => {
        server.close();
        await sleep(config.drain_work_ms, undefined, { signal: deadline }).catch(() => undefined);
        logger.info("http closed", { cut: deadline.aborted });
      });
      if (config.reload) lifecycle.onReload("routes", () => logger.info("reloaded"));
      if (config.fail === "later")
        setTimeout(() => {
          throw new Error("bad luck");
        }, 50);
    });
  },
});
