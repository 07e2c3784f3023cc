// PutBucketWebsite, GetBucketWebsite, DeleteBucketWebsite: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketWebsite.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toBody = (inner: string) =>
  `<WebsiteConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</WebsiteConfiguration>`;

const INDEX = "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>";

export const cases = casesOf(
  "PutBucketWebsite",
  [
    "keeps index, error document and routing rules",
    async ({ ask }) => {
      const body = toBody(
        `${INDEX}<ErrorDocument><Key>error.html</Key></ErrorDocument><RoutingRules><RoutingRule><Condition><KeyPrefixEquals>docs/</KeyPrefixEquals></Condition><Redirect><ReplaceKeyPrefixWith>documents/</ReplaceKeyPrefixWith><HttpRedirectCode>302</HttpRedirectCode></Redirect></RoutingRule></RoutingRules>`,
      );
      assertEmpty(await ask("PUT", "?website", { body }), 200);
      const found = readResult(await ask("GET", "?website"), "WebsiteConfiguration");
      assert.equal(found.get("IndexDocument/Suffix"), "index.html");
      assert.equal(found.get("ErrorDocument/Key"), "error.html");
      const rule = found.all("RoutingRules/RoutingRule")[0]!;
      assert.equal(rule.get("Condition/KeyPrefixEquals"), "docs/");
      assert.equal(rule.get("Redirect/ReplaceKeyPrefixWith"), "documents/");
      assert.equal(rule.get("Redirect/HttpRedirectCode"), "302");
    },
  ],
  [
    "keeps a redirection of all requests",
    async ({ ask, must }) => {
      const inner =
        "<RedirectAllRequestsTo><HostName>example.com</HostName><Protocol>https</Protocol></RedirectAllRequestsTo>";
      await must("PUT", "?website", { body: toBody(inner) });
      const found = readResult(await ask("GET", "?website"), "WebsiteConfiguration");
      assert.equal(found.get("RedirectAllRequestsTo/HostName"), "example.com");
      assert.equal(found.get("RedirectAllRequestsTo/Protocol"), "https");
    },
  ],
  [
    "DELETE removes it",
    async ({ ask, must }) => {
      await must("PUT", "?website", { body: toBody(INDEX) });
      assertEmpty(await ask("DELETE", "?website"), 204);
      assertError(await ask("GET", "?website"), 404, "NoSuchWebsiteConfiguration");
    },
  ],
  [
    "InvalidArgument for a suffix that is empty or holds a slash",
    async ({ ask }) => {
      for (const suffix of ["", "a/index.html"]) {
        const body = toBody(`<IndexDocument><Suffix>${suffix}</Suffix></IndexDocument>`);
        assertError(await ask("PUT", "?website", { body }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "refuses a configuration that says nothing, and redirects that are none",
    async ({ ask }) => {
      const toRule = (redirect: string) =>
        `${INDEX}<RoutingRules><RoutingRule><Redirect>${redirect}</Redirect></RoutingRule></RoutingRules>`;
      const both =
        "<ReplaceKeyWith>a</ReplaceKeyWith><ReplaceKeyPrefixWith>b</ReplaceKeyPrefixWith>";
      const bodies = [
        toBody(""),
        toBody(toRule("<HttpRedirectCode>200</HttpRedirectCode>")),
        toBody(toRule("<Protocol>ftp</Protocol>")),
        toBody(toRule(both)),
        "x",
      ];
      for (const body of bodies) {
        assert.equal((await ask("PUT", "?website", { body })).status, 400);
      }
    },
  ],
);
