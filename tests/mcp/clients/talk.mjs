// What every official client is asked to do, whatever its version and transport.
import assert from "node:assert/strict";
import test from "node:test";

const program = process.env.SLIPSTREAM_BIN;
const root = process.env.PROJECT;
const index = process.env.INDEX;
export const url = new URL(process.env.MCP_URL);
export const stdio = { command: program, args: ["mcp", "--index", index, "--project", root], stderr: "ignore" };

// connect: makes a client that is connected.
export function talk(name, connect, check = () => {}) {
  test(name, async (t) => {
    const client = await connect();
    t.after(() => client.close());
    check(client);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), [
      "search", "read_lines", "find_symbol", "find_related", "list_projects", "index_status",
      "wait_until_fresh"]);
    const waited = await client.callTool({ name: "wait_until_fresh", arguments: { seconds: 30 } });
    assert.equal(waited.structuredContent.index.is_fresh, true);
    const found = await client.callTool({ name: "search", arguments: { query: "where does the heron wait" } });
    assert.equal(found.structuredContent.places[0].path, "docs/birds.md");
    assert.match(found.content[0].text, /docs\/birds\.md:1-3 .*\n# Waders/);
    const wrong = await client.callTool({ name: "search", arguments: { query: "heron", max_results: 0 } });
    assert.equal(wrong.isError, true);
    await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), /Unknown tool/);
    const { resources } = await client.listResources();
    const birds = resources.find((one) => one.name === "docs/birds.md");
    const { contents } = await client.readResource({ uri: birds.uri });
    assert.match(contents[0].text, /The heron stands/);
    await assert.rejects(client.readResource({ uri: `file://${root}/.env` }), /not found/i);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.equal(resourceTemplates.length, 1);
  });
}
