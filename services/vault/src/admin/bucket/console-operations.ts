// Operations of S3 for callers of the admin API.
import type { AuthorizedRequest, GuardedRequest } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { type AddressSet, traceHops } from "@platform/kernel/network";
import type { S3Answer } from "../../s3/answer.ts";
import type { OperationContext } from "../../s3/context.ts";
import type { InnerOperations, OperationCall, Sender } from "../../s3/inner-operations.ts";
import { asProblem } from "../problem.ts";
import type { StorageCallers } from "../storage-callers.ts";

/** Parts of a request that describe its sender. */
export type SentRequest = Pick<GuardedRequest, "headers" | "peer"> & { caller: Caller };

/** A call on a key that the body of the request names; `more` lists other condition keys whose values it chooses. */
export function onAnyKey(
  call: Omit<OperationCall, "key" | "unknown">,
  ...more: readonly string[]
): OperationCall {
  const unknown = { resource: "key", values: ["s3:existingobjecttag/", ...more] } as const;
  return { ...call, key: PLACEHOLDER, unknown };
}

/** Stands for a name that is not known yet. */
export const PLACEHOLDER = "-";

/** Options of {@link ConsoleOperations}. */
export interface ConsoleOperationsOptions {
  operations: InnerOperations;
  callers: StorageCallers;
  trustedProxies: AddressSet;
  /** True if the admin listener uses TLS. */
  isTls: boolean;
}

/** Runs operations with the identities of the caller in storage. Errors are problems of the platform. */
export class ConsoleOperations {
  readonly #options: ConsoleOperationsOptions;

  constructor(options: ConsoleOperationsOptions) {
    this.#options = options;
  }

  /** Runs an operation as the object API would. */
  run(request: SentRequest, call: OperationCall): Promise<S3Answer> {
    const operations = this.#options.operations;
    return asProblem(operations.run(this.describeSender(request), this.#complete(request, call)));
  }

  /** Authorizes an operation as the object API would, and does `work` in its place. */
  perform<Result>(
    request: SentRequest,
    call: OperationCall,
    work: (context: OperationContext) => Promise<Result>,
  ): Promise<Result> {
    const sender = this.describeSender(request);
    return asProblem(this.#options.operations.perform(sender, this.#complete(request, call), work));
  }

  /** True if the caller may run an operation. */
  isAllowed(request: SentRequest, call: OperationCall): Promise<boolean> {
    const sender = this.describeSender(request);
    return asProblem(this.#options.operations.isAllowed(sender, this.#complete(request, call)));
  }

  /** Throws 401 or 403 unless the caller has an identity in storage. */
  requireIdentity(caller: Caller): void {
    this.#options.callers.list(caller);
  }

  /**
   * The `authorize` of a route: throws as the operation would. If the body chooses between several operations, one that the
   * caller may run is enough.
   */
  createCheck(
    describe: (request: AuthorizedRequest) => readonly OperationCall[],
  ): (request: AuthorizedRequest) => Promise<void> {
    return async (request) => {
      const calls = await asProblem(Promise.try(() => describe(request)));
      for (const call of calls) {
        if (await this.isAllowed(request, call)) return;
      }
      if (calls[0] !== undefined) await this.perform(request, calls[0], async () => undefined);
    };
  }

  /** The sender with one identity at a time, for operations that are authorized item by item. */
  listIdentities(request: SentRequest): Sender[] {
    const sender = this.describeSender(request);
    return sender.callers.map((caller) => ({ ...sender, callers: [caller] }));
  }

  /** Runs an operation for one of `listIdentities`. */
  runAs(sender: Sender, call: OperationCall): Promise<S3Answer> {
    return asProblem(this.#options.operations.run(sender, call));
  }

  /** The sender of a request, with its identities. Throws 401 or 403 without any. */
  describeSender({ caller, headers, peer }: SentRequest): Sender {
    const { callers, trustedProxies, isTls } = this.#options;
    const address = peer.kind === "tcp" ? peer.address : "127.0.0.1";
    const sent = {
      forwardedFor: headers.get("x-forwarded-for") ?? "",
      forwarded: headers.get("forwarded") ?? "",
      proto: headers.get("x-forwarded-proto") ?? "",
    };
    const { hops, proto } = traceHops(address, sent, trustedProxies);
    return {
      callers: callers.list(caller),
      clientAddress: hops[0].address,
      secure: isTls || proto === "https",
      host: headers.get("host") ?? "",
    };
  }

  // Policies may ask for these two.
  #complete({ headers }: SentRequest, call: OperationCall): OperationCall {
    const own = ["user-agent", "referer"].flatMap((name): [string, string][] => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    });
    return { ...call, fields: [...own, ...(call.fields ?? [])] };
  }
}
