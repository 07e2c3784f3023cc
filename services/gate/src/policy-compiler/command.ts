// The commands `policy compile`, `policy check` and `policy test`.
import { readFile } from "node:fs/promises";
import { replaceFile } from "@platform/kernel/files";
import { HttpGuest, compileHttpModule } from "@platform/wasm/http";
import type {
  PolicyCheckOptions,
  PolicyCompileOptions,
  PolicyTestOptions,
} from "../config/policy-options.ts";
import { escapeControls } from "../recording/escape-controls.ts";
import { readLogLines } from "../recording/log-lines.ts";
import { readRecordedExchange, restoreOriginal } from "../recording/recorded-exchange.ts";
import { RecordedMessages } from "../recording/recorded-messages.ts";
import { RECORDED_LINE_BYTES_MAX } from "../recording/recording-log.ts";
import { GUEST_LIMITS_DEFAULT, type PolicyRule } from "../shared-state/index.ts";
import { compilePolicy, readPolicyFile } from "./compile-policy.ts";

/** Exit codes: fine, the policy has faults or denies, or a file cannot be used. */
const EXIT = { fine: 0, refused: 1, trouble: 2 } as const;

type Print = (text: string) => void;

/** Compiles a policy; the module appears only when it is whole. Returns the exit code. */
export function runPolicyCompile(
  file: string,
  options: PolicyCompileOptions,
  print: Print,
  printError: Print,
): Promise<number> {
  return withRules(file, options, printError, async (rules) => {
    const module = compilePolicy(rules);
    await replaceFile(options.output, module);
    print(`${options.output}: ${rules.length} rules, ${module.length} bytes\n`);
    return EXIT.fine;
  });
}

/** Reports all faults of a policy. Returns the exit code. */
export function runPolicyCheck(
  file: string,
  options: PolicyCheckOptions,
  print: Print,
  printError: Print,
): Promise<number> {
  return withRules(file, options, printError, (rules) => {
    print(`${file}: ok, ${rules.length} rules\n`);
    return Promise.resolve(EXIT.fine);
  });
}

/** Reports which recorded requests a policy denies. Returns the exit code. */
export function runPolicyTest(
  file: string,
  options: PolicyTestOptions,
  print: Print,
  printError: Print,
): Promise<number> {
  return withRules(file, options, printError, async (rules) => {
    const result = await testPolicy(rules, options);
    print(options.format === "json" ? `${JSON.stringify(result, null, 2)}\n` : describe(result));
    if (result.requests === 0) {
      printError("the recording contains no request");
      return EXIT.trouble;
    }
    return result.denied === 0 ? EXIT.fine : EXIT.refused;
  });
}

interface PolicyTestResult {
  requests: number;
  denied: number;
  /** The first denied requests: line of the recording, method and target. */
  shown: { line: number; method: string; target: string }[];
}

async function testPolicy(
  rules: readonly PolicyRule[],
  { log, show }: PolicyTestOptions,
): Promise<PolicyTestResult> {
  const guest = new HttpGuest(compileHttpModule(compilePolicy(rules)), {
    config: Buffer.alloc(0),
    fuelPerCall: GUEST_LIMITS_DEFAULT.fuelPerCall,
    log: () => undefined,
    isLogged: () => false,
  });
  const result: PolicyTestResult = { requests: 0, denied: 0, shown: [] };
  for await (const { number, text } of readLogLines(log, RECORDED_LINE_BYTES_MAX)) {
    const line = text === undefined ? undefined : readRecordedExchange(text);
    if (line === undefined) continue;
    const recorded = restoreOriginal(line);
    result.requests++;
    const verdict = await guest.handleRequest(RecordedMessages.forRequest(recorded));
    guest.endRequest();
    if (verdict.next) continue;
    result.denied++;
    const { method, target } = recorded.request;
    if (result.shown.length < show) result.shown.push({ line: number, method, target });
  }
  return result;
}

async function withRules(
  file: string,
  { cluster, region }: PolicyCheckOptions,
  printError: Print,
  work: (rules: readonly PolicyRule[]) => Promise<number>,
): Promise<number> {
  try {
    const place = {
      ...(cluster === undefined ? {} : { cluster }),
      ...(region === undefined ? {} : { region }),
    };
    const read = readPolicyFile(await readFile(file), place);
    if (read.faults === undefined) return await work(read.rules);
    for (const { line, column, message } of read.faults)
      process.stderr.write(`${file}:${line}:${column}: ${message}\n`);
    return EXIT.refused;
  } catch (error) {
    printError(error instanceof Error ? error.message : String(error));
    return EXIT.trouble;
  }
}

function describe({ requests, denied, shown }: PolicyTestResult): string {
  const lines = shown.map(
    ({ line, method, target }) => `line ${line}: ${escapeControls(`${method} ${target}`)}\n`,
  );
  const hidden = denied - shown.length;
  if (hidden > 0) lines.push(`… and ${hidden} more\n`);
  return `${lines.join("")}${requests} requests, ${denied} denied\n`;
}
