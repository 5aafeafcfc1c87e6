// @modelcontextprotocol/sdk, which begins with initialize.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { stdio, talk, url } from "./talk.mjs";

for (const [name, transport] of [["stdio", () => new StdioClientTransport(stdio)],
                                 ["HTTP", () => new StreamableHTTPClientTransport(url)]]) {
  talk(`sdk over ${name}`, async () => {
    const client = new Client({ name: "judge", version: "1" });
    await client.connect(transport());
    await client.ping();
    return client;
  }, (client) => assert.equal(client.getServerVersion().name, "slipstream"));
}
