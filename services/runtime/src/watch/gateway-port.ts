// The gateway of the platform that supervises this process, asked by messages.
import type { GatewayPort } from "./gateway-link.ts";
import { isGatewayAnswer, PROTOCOL, type GatewayAnswer, type GatewayRequest } from "./messages.ts";

/** Above the time that the platform waits for the gateway. */
const ANSWER_MS = 40_000;

/** Creates the link of a supervised process. */
export function createGatewayPort(): GatewayPort {
  const waiting = new Map<number, (answer: Omit<GatewayAnswer, "type" | "id">) => void>();
  let last = 0;
  process.on("message", (message: unknown) => {
    if (isGatewayAnswer(message)) waiting.get(message.id)?.(message);
  });
  return {
    ask(rules, version) {
      const id = (last += 1);
      return new Promise((resolve) => {
        const settle = (answer: Omit<GatewayAnswer, "type" | "id">): void => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(answer);
        };
        const late = { hasGateway: true, refused: "the platform does not answer" };
        const timer = setTimeout(() => settle(late), ANSWER_MS).unref();
        waiting.set(id, settle);
        const request: GatewayRequest = { type: "gateway", id, rules, ...(version && { version }) };
        if (process.connected) {
          process.send?.({ ...request, protocol: PROTOCOL }, undefined, undefined, () => undefined);
        } else settle(late);
      });
    },
  };
}
