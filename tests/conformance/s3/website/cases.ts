// Buckets as web sites: https://docs.aws.amazon.com/AmazonS3/latest/userguide/WebsiteHosting.html
import assert from "node:assert/strict";
import { casesOf, type Scene } from "../case.ts";
import { WEBSITE_DOMAIN } from "../stage.ts";

const INDEX = "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>";
const ERROR = "<ErrorDocument><Key>error.html</Key></ErrorDocument>";
const HTML = { "content-type": "text/html" };

/** Makes the bucket a public web site, by default with public listing. */
async function publish({ must, bucket }: Scene, inner: string, mayList = true): Promise<void> {
  const body = `<WebsiteConfiguration>${inner}</WebsiteConfiguration>`;
  await must("PUT", "?website", { body });
  const Statement = [
    ["s3:GetObject", `arn:aws:s3:::${bucket}/*`],
    ["s3:ListBucket", `arn:aws:s3:::${bucket}`],
  ]
    .slice(0, mayList ? 2 : 1)
    .map(([Action, Resource]) => ({ Effect: "Allow", Principal: "*", Action, Resource }));
  await must("PUT", "?policy", { body: JSON.stringify({ Version: "2012-10-17", Statement }) });
}

function visit({ client, bucket }: Scene, path: string, method = "GET") {
  return client.send(method, path, { as: "nobody", host: `${bucket}.${WEBSITE_DOMAIN}` });
}

const toRules = (condition: string, redirect: string) =>
  `${INDEX}<RoutingRules><RoutingRule><Condition>${condition}</Condition><Redirect>${redirect}</Redirect></RoutingRule></RoutingRules>`;

export const cases = casesOf(
  "Web sites",
  [
    "gives the index of the root and of folders",
    async (scene) => {
      await publish(scene, INDEX);
      await scene.put("index.html", "root", HTML);
      await scene.put("docs/index.html", "docs", HTML);
      const root = await visit(scene, "/");
      assert.equal(root.text, "root");
      assert.equal(root.headers["content-type"], "text/html");
      assert.equal((await visit(scene, "/docs/")).text, "docs");
      assert.equal((await visit(scene, "/docs/index.html")).text, "docs");
    },
  ],
  [
    "sends a folder without its slash to the folder",
    async (scene) => {
      await publish(scene, INDEX);
      await scene.put("docs/index.html", "docs", HTML);
      const answer = await visit(scene, "/docs");
      assert.equal(answer.status, 302);
      assert.equal(answer.headers["location"], "/docs/");
    },
  ],
  [
    "HEAD gives the headers alone",
    async (scene) => {
      await publish(scene, INDEX);
      await scene.put("index.html", "root", HTML);
      const answer = await visit(scene, "/", "HEAD");
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["content-length"], "4");
      assert.equal(answer.body.length, 0);
    },
  ],
  [
    "gives the error document with the error's status",
    async (scene) => {
      await publish(scene, INDEX + ERROR);
      await scene.put("error.html", "not here", HTML);
      const answer = await visit(scene, "/missing");
      assert.equal(answer.status, 404);
      assert.equal(answer.text, "not here");
      assert.equal(answer.headers["content-type"], "text/html");
    },
  ],
  [
    "gives errors as HTML, which holds no markup of the request",
    async (scene) => {
      await publish(scene, INDEX);
      const answer = await visit(scene, "/%3Cscript%3Ealert(1)%3C/script%3E");
      assert.equal(answer.status, 404);
      assert.match(answer.headers["content-type"]!, /^text\/html/);
      assert.match(answer.text, /NoSuchKey/);
      assert.ok(!answer.text.includes("<script>"));
    },
  ],
  [
    "403 where not everyone may read",
    async (scene) => {
      await publish(scene, INDEX);
      await scene.put("index.html", "root");
      await scene.must("DELETE", "?policy");
      assert.equal((await visit(scene, "/")).status, 403);
    },
  ],
  [
    "405 for all but GET and HEAD",
    async (scene) => {
      await publish(scene, INDEX);
      for (const method of ["PUT", "POST", "DELETE"]) {
        assert.equal((await visit(scene, "/key", method)).status, 405);
      }
    },
  ],
  [
    "404 for a bucket that is no site",
    async (scene) => {
      const answer = await visit(scene, "/");
      assert.equal(answer.status, 404);
      assert.match(answer.text, /NoSuchWebsiteConfiguration/);
    },
  ],
  [
    "an object may send elsewhere",
    async (scene) => {
      await publish(scene, INDEX);
      await scene.put("old", "x", { "x-amz-website-redirect-location": "/new" });
      const answer = await visit(scene, "/old");
      assert.equal(answer.status, 301);
      assert.equal(answer.headers["location"], "/new");
      const head = await scene.ask("HEAD", "/old");
      assert.equal(head.status, 200);
      assert.equal(head.headers["x-amz-website-redirect-location"], "/new");
    },
  ],
  [
    "a site may send every request elsewhere",
    async (scene) => {
      await publish(
        scene,
        "<RedirectAllRequestsTo><HostName>example.com</HostName><Protocol>https</Protocol></RedirectAllRequestsTo>",
      );
      const answer = await visit(scene, "/a/b");
      assert.equal(answer.status, 301);
      assert.equal(answer.headers["location"], "https://example.com/a/b");
    },
  ],
  [
    "a rule sends a prefix elsewhere",
    async (scene) => {
      const rules = toRules(
        "<KeyPrefixEquals>docs/</KeyPrefixEquals>",
        "<ReplaceKeyPrefixWith>documents/</ReplaceKeyPrefixWith>",
      );
      await publish(scene, rules);
      const answer = await visit(scene, "/docs/a");
      assert.equal(answer.status, 301);
      assert.match(answer.headers["location"]!, /\/documents\/a$/);
    },
  ],
  [
    "a rule sends what is missing elsewhere",
    async (scene) => {
      const rules = toRules(
        "<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>",
        "<HostName>example.com</HostName><ReplaceKeyWith>404.html</ReplaceKeyWith><HttpRedirectCode>307</HttpRedirectCode>",
      );
      await publish(scene, rules);
      await scene.put("here", "x");
      assert.equal((await visit(scene, "/here")).text, "x");
      const answer = await visit(scene, "/missing");
      assert.equal(answer.status, 307);
      assert.match(answer.headers["location"]!, /^https?:\/\/example\.com\/404\.html$/);
    },
  ],
  [
    "takes parameters of pages for the pages' own",
    async (scene) => {
      await publish(scene, INDEX);
      await scene.put("index.html", "root", HTML);
      assert.equal((await visit(scene, "/?acl")).text, "root");
    },
  ],
  [
    "a folder without its slash is found where nobody may list, and what is missing is 403",
    async (scene) => {
      await publish(scene, INDEX, false);
      await scene.put("docs/index.html", "docs", HTML);
      const answer = await visit(scene, "/docs");
      assert.equal(answer.status, 302);
      assert.equal(answer.headers["location"], "/docs/");
      assert.equal((await visit(scene, "/other")).status, 403);
    },
  ],
  [
    "errors say in a list and in headers what went wrong, also beside a page of the site's own",
    async (scene) => {
      await publish(scene, INDEX);
      const plain = await visit(scene, "/a%3Cb");
      assert.equal(plain.headers["content-type"], "text/html; charset=utf-8");
      assert.ok(plain.text.includes("<title>404 Not Found</title>"));
      assert.ok(plain.text.includes("<li>Code: NoSuchKey</li>"));
      assert.ok(plain.text.includes("<li>Key: a&lt;b</li>"));
      assert.ok(
        plain.text.includes(`<li>RequestId: ${String(plain.headers["x-amz-request-id"])}</li>`),
      );
      await scene.must("PUT", "?website", {
        body: `<WebsiteConfiguration>${INDEX}${ERROR}</WebsiteConfiguration>`,
      });
      await scene.put("error.html", "own", HTML);
      const own = await visit(scene, "/missing");
      assert.equal(own.text, "own");
      for (const { headers } of [plain, own]) {
        assert.equal(headers["x-amz-error-code"], "NoSuchKey");
        assert.equal(headers["x-amz-error-message"], "The specified key does not exist.");
      }
      const refused = await visit(scene, "/", "POST");
      assert.equal(refused.headers["allow"], "GET, HEAD");
    },
  ],
  [
    "what a rule puts in place of a prefix is taken as it stands, and the rest is encoded",
    async (scene) => {
      const rules = toRules(
        "<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>",
        "<HostName>example.com</HostName><ReplaceKeyPrefixWith>#!/a b?p=%20&amp;q=</ReplaceKeyPrefixWith>",
      );
      await publish(scene, rules);
      const answer = await visit(scene, "/x%20y/z");
      assert.match(
        answer.headers["location"]!,
        /^https?:\/\/example\.com\/#!\/a%20b\?p=%20&q=x%20y\/z$/,
      );
    },
  ],
  [
    "a redirection takes the request's parameters along, unless it names another page",
    async (scene) => {
      const locate = async (path: string) => (await visit(scene, path)).headers["location"];
      await publish(
        scene,
        "<RedirectAllRequestsTo><HostName>example.com</HostName></RedirectAllRequestsTo>",
      );
      assert.match((await locate("/a?x=1&y=%20"))!, /:\/\/example\.com\/a\?x=1&y=%20$/);
      const condition = "<KeyPrefixEquals>a</KeyPrefixEquals>";
      const page = "<ReplaceKeyWith>page</ReplaceKeyWith>";
      await publish(scene, toRules(condition, page));
      assert.match((await locate("/a?x=1"))!, /\/page$/);
    },
  ],
);
