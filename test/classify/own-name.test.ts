import assert from 'node:assert/strict'
import { test } from 'tap'
import { type CorpusRow, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import { NameBook } from '../../src/classify/known/own-name.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'

const BOOK = new NameBook(
  parseSoftwareList([
    agent('acme-sdk-js', 'Acme TypeScript SDK', ['@acme-ai/sdk', 'acme']),
    agent('unit-ai-sdk', 'Unit AI SDK', ['@ai-sdk/openai', 'unit-llm']),
    agent('qwen-code', 'Qwen Code', ['qwen-code-cli']),
    agent('mcp-client', 'MCP client', ['mcp-sdk']),
  ]),
)

test('a client says its name in its User-Agent, in another header, or in the name of one', async () => {
  for (const [client, name, value] of [
    ['acme', 'User-Agent', 'Acme/JS 1.0'],
    ['acme', 'User-Agent', 'AsyncAcme/Python 1.0'],
    ['@acme-ai/sdk', 'User-Agent', 'acme/1.0'],
    ['acme', 'X-Client', 'built with ACME 3'],
    ['acme', 'x-acme-version', '1.0'],
    ['acme-node', 'x-sdk', 'acme'],
    ['unit-llm', 'User-Agent', 'ai/7 ai-sdk/provider-utils/4'],
    ['qwen-code-cli', 'User-Agent', 'QwenCode/0.15 (linux)'],
    ['mcp-sdk', 'mcp-session-id', 'x'],
    ['not-known-yet', 'User-Agent', 'not-known-yet/1.0'],
    ['not-known-yet', 'User-Agent', 'NotKnownYet/1.0'],
  ] as const)
    assert.ok(BOOK.namesItself(row(client, [[name, value]])), `${client} ${name}: ${value}`)
})

test('a common word or the name of the server names no client', async () => {
  for (const [client, name, value] of [
    ['acme', 'User-Agent', 'node'],
    ['acme', 'User-Agent', 'Pacme/1.0'],
    ['acme', 'User-Agent', 'sdk/1.0 js'],
    ['acme', 'Host', 'api.acme.test'],
    [':authority', ':authority', 'authority'],
    ['acme', 'Referer', 'https://acme.test/'],
    ['acme', 'Cookie', 'acme=1'],
    ['fetch', 'sec-fetch-mode', 'cors'],
    ['qwen-code-cli', 'User-Agent', 'code/1.0'],
    ['mcp-sdk', 'User-Agent', 'node'],
    ['ai', 'User-Agent', 'ai/1'],
  ] as const)
    assert.ok(!BOOK.namesItself(row(client, [[name, value]])), `${client} ${name}: ${value}`)
  assert.ok(!BOOK.namesItself(row('acme', [])))
})

test('a later request may say it', async () => {
  const { requests } = row('acme', [['User-Agent', 'acme/1']])
  const first = row('acme', [['User-Agent', 'node']])
  assert.ok(BOOK.namesItself({ ...first, requests: [...first.requests, ...requests] }))
})

test('a client is called by its id, its name or an alias', async () => {
  for (const client of ['acme-sdk-js', 'Acme TypeScript SDK', 'ACME', '@acme-ai/sdk'])
    assert.ok(BOOK.isCalled('acme-sdk-js', client), client)
  for (const client of ['acm', 'sdk', 'qwen-code']) assert.ok(!BOOK.isCalled('acme-sdk-js', client), client)
  assert.ok(!BOOK.isCalled('unknown', 'acme'))
})

function agent(id: string, name: string, aliases: readonly string[]): object {
  const signatures = [{ user_agent: `${id}/`, source: 'made for this test', date: '2026-11-21' }]
  return { id, name, kind: 'agent', category: 'custom', aliases, signatures }
}

function row(client: string, headers: readonly (readonly [string, string])[]): CorpusRow {
  const requests = [{ http: '1.1', method: 'GET', path: '/acme', headers }]
  return parseCorpusRow({ id: 'r1', client, label: 'llm-sdk', requests })
}
