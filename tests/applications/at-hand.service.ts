// A service that uses each part of the platform; every route is one call.
import { auth, events, mail, messages, objects } from "@platform/service";

server { port: 0 }

const key = (req: { params: { key: string } }): string => req.params.key;

export route PUT /objects/:key (req) body "bytes" {
  await objects.put(key(req), req.body, { type: "text/plain" });
}
export route GET /objects/:key (req) {
  const found = await objects.get(key(req));
  return found === undefined ? "missing" : `${found.headers.get("content-type")}: ${await found.text()}`;
}
export route DELETE /objects/:key (req) { await objects.delete(key(req)); }
export route GET /objects { return objects.list({ prefix: "a!'(", limit: 1 }); }
export route GET /large {
  const bytes = new Uint8Array(20_000_000).fill(7);
  await objects.put("large", new Blob([bytes]).stream());
  const back = new Uint8Array(await (await objects.get("large"))!.arrayBuffer());
  await objects.delete("large");
  return back.length === bytes.length && back.every((byte) => byte === 7);
}
export route GET /urls {
  return {
    put: await objects.uploadUrl("note é.txt"),
    get: await objects.downloadUrl("note é.txt", { saveAs: "note é.txt" }),
  };
}

export route POST /topics/:topic (req) { return messages.publish(req.params.topic, req.body); }
export route GET /topics/:topic (req) {
  return events(async function* (signal) {
    const from = req.query.get("from") === "earliest" ? { from: "earliest" as const } : {};
    for await (const message of messages.subscribe(req.params.topic, { ...from, signal })) {
      yield { data: { id: message.id, value: message.json() } };
    }
  });
}
// Handles two messages of a group: the first attempt of the first one fails.
export route GET /work/:topic (req) {
  const seen: string[] = [];
  const options = { group: "workers", from: "earliest", signal: req.signal } as const;
  for (;;) {
    try {
      for await (const message of messages.subscribe(req.params.topic, options)) {
        seen.push(`${message.json()}/${message.retryCount}`);
        if (seen.length === 1) throw new Error("try again");
        if (seen.length > 2) return seen;
      }
    } catch (error) {
      if ((error as Error).message !== "try again") throw error;
    }
  }
}

export route POST /mail (req) {
  const { to, key: idempotencyKey } = req.body as { to: string; key: string };
  return mail.send({ to, subject: "Reminder", text: "Water the plants" }, { idempotencyKey });
}

export route GET /sign-in (req) { return auth.signIn({ returnTo: req.query.get("to") ?? "/me" }); }
export route GET /callback (req) { return auth.finishSignIn(req); }
export route GET /sign-out { return auth.signOut(); }
export route GET /me (req) { return auth.requireUser(req); }
export route POST /me (req) { return auth.requireUser(req); }
export route GET /token { return auth.token(); }
export route GET /scoped (req) requires "notes:read" { return req.caller.kind; }
