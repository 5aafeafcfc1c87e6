// @modelcontextprotocol/client, of both eras.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { stdio, talk, url } from "./talk.mjs";

const eras = { legacy: "2025-11-25", auto: "2026-07-28", pinned: "2026-07-28" };
for (const [name, transport] of [["stdio", () => new StdioClientTransport(stdio)],
                                 ["HTTP", () => new StreamableHTTPClientTransport(url)]]) {
  for (const [era, revision] of Object.entries(eras)) {
    const mode = era === "pinned" ? { pin: revision } : era;
    talk(`client over ${name}, ${era}`, async () => {
      const client = new Client({ name: "judge", version: "1" }, { versionNegotiation: { mode } });
      await client.connect(transport());
      return client;
    }, (client) => assert.equal(client.getNegotiatedProtocolVersion(), revision));
  }
}
