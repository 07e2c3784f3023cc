// Each part of mail starts alone, on the parts below it.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { openPartsAlone } from "@platform/testing/parts";
import { waitFor } from "@platform/testing/wait";
import { openDelivery } from "../src/assembly/delivery.ts";
import { openInbound } from "../src/assembly/inbound.ts";
import { openLinks } from "../src/assembly/links.ts";
import { openOutcomes } from "../src/assembly/outcomes.ts";
import { openSenders } from "../src/assembly/senders.ts";
import { openSending } from "../src/assembly/sending.ts";
import { openStorage } from "../src/assembly/storage.ts";
import { sendRequest } from "../src/send/request.ts";
import { notifyDefinition, type NotifyConfig } from "../src/config.ts";

async function openParts(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const parts = openPartsAlone<NotifyConfig>(t, notifyDefinition, {
    env: (folder) => ({
      PLATFORM_NOTIFY_DATA_DIR: folder,
      PLATFORM_NOTIFY_FROM_DOMAIN: "shop.example",
      ...env,
    }),
  });
  return { ...parts, storage: await openStorage(parts.config, parts.service) };
}

test("storage: the database is migrated, and ready until it is closed", async (t) => {
  const { storage, lifecycle } = await openParts(t);
  assert.equal(await storage.database.check(), undefined);
  await lifecycle.close();
});

test("outcomes: a suppression is there when the part is opened again", async (t) => {
  const first = await openParts(t);
  const { suppressions } = await openOutcomes(first.config, first.service, first.storage);
  await suppressions.add([{ address: "ann@shop.example", reason: "manual" }], Date.now());
  const again = await openParts(t, { PLATFORM_NOTIFY_DATA_DIR: first.folder });
  const reopened = await openOutcomes(again.config, again.service, again.storage);
  assert.equal((await reopened.suppressions.get("ann@shop.example"))?.reason, "manual");
});

test("senders: the configured domain is one's own, another is not", async (t) => {
  const { config, service, storage } = await openParts(t);
  const { isOwnDomain } = await openSenders(config, service, storage);
  assert.equal(isOwnDomain("shop.example"), true);
  assert.equal(isOwnDomain("other.example"), false);
});

test("links: they lead to the listener, are read back, and no changed one is", async (t) => {
  const { config, service, storage } = await openParts(t);
  const outcomes = await openOutcomes(config, service, storage);
  const links = await openLinks(config, service, storage, outcomes);
  links.setListenerUrl("http://127.0.0.1:8084");
  const subscription = { address: "ann@shop.example", messageId: "msg_1", position: 0 };
  const url = links.unsubscribes.formatUrl(subscription);
  assert.ok(url.startsWith("http://127.0.0.1:8084/"), url);
  const token = url.slice(url.lastIndexOf("/") + 1);
  assert.equal(links.unsubscribes.parse(token)?.address, subscription.address);
  const changed = `${token.startsWith("A") ? "B" : "A"}${token.slice(1)}`;
  assert.equal(links.unsubscribes.parse(changed), undefined);
});

test("sending reaches the development inbox without inbound mail and without an API", async (t) => {
  const { config, service, storage } = await openParts(t);
  const outcomes = await openOutcomes(config, service, storage);
  const senders = await openSenders(config, service, storage);
  const links = await openLinks(config, service, storage, outcomes);
  links.setListenerUrl("http://127.0.0.1:8084");
  const delivery = await openDelivery(config, service, storage, outcomes, senders, links);
  const sending = openSending(config, service, storage, outcomes, senders, links, delivery);
  delivery.dispatcher.start();
  const mail = { from: "shop@shop.example", to: "ann@example.org", subject: "Hello", text: "Hi" };
  const span = service.tracer.startSpan({ name: "test" });
  const context = { client: "", isOperator: true, idempotencyKey: undefined, span, path: "" };
  await sending.sender.send(sendRequest.parse(mail), context);
  await waitFor(async () => (await outcomes.store.countOpen()) === 0);
  const [item] = await delivery.inbox.list(10, undefined);
  assert.equal(item?.subject, "Hello");
});

test("inbound: mail is taken before anything can be sent", async (t) => {
  const { config, service, storage, lifecycle } = await openParts(t, {
    PLATFORM_NOTIFY_INBOUND_PORT: "0",
    PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
  });
  const outcomes = await openOutcomes(config, service, storage);
  const senders = await openSenders(config, service, storage);
  const { inbound } = openInbound(config, service, undefined, storage, outcomes, senders);
  await inbound.start(lifecycle);
  const { port } = lifecycle.listeners[0]!;
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  for await (const chunk of socket) {
    if (answer === "") socket.end("QUIT\r\n");
    answer += String(chunk);
  }
  assert.match(answer, /^220 .*\r\n221 /);
});
