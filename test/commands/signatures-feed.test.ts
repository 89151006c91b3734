import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import type { Command } from '../../src/terminal/command.ts'
import { exportSignatures } from '../../src/commands/signatures/signatures-export.ts'
import { feedKey, feedVerify } from '../../src/commands/signatures/signatures-feed.ts'
import { listFeeds, rollback } from '../../src/commands/signatures/signatures-rollback.ts'
import { silentLog } from '../../src/shared/log.ts'
import { FeedStore } from '../../src/manage/publish/feed-store.ts'
import { openFeed, parseFeedKey } from '../../src/plane/feed.ts'
import { memoryIo } from './memory-io.ts'

const CURL =
  '- {id: curl, name: curl, kind: tool, signatures: [{user_agent: curl/, source: x, date: 2026-11-21}]}\n'

test('a key is made once, for its owner alone', async (t) => {
  const { at, run } = bench(t)
  const { exitCode, out } = await run('feed-key', at('k'))
  assert.equal(exitCode, 0)
  assert.match(out, /^ed25519:[A-Za-z0-9+/]{43}=\n$/)
  assert.equal(statSync(at('k')).mode & 0o777, 0o600)
  const pem = readFileSync(at('k'), 'utf8')
  const again = await run('feed-key', at('k'))
  assert.deepEqual([again.exitCode, again.out], [1, ''])
  assert.match(again.err, /k is there already, and stays as it is$/m)
  assert.equal(readFileSync(at('k'), 'utf8'), pem)
  assert.equal((await run('feed-key', '--public', at('k'))).out, out)
  assert.equal((await run('feed-key', at('none/k'))).exitCode, 1)
  assert.match((await run('feed-key', '--public', at('none'))).err, /cannot be read \(ENOENT\)/)
})

test('what is signed can be verified, and used', async (t) => {
  const { at, run } = bench(t)
  const key = (await run('feed-key', at('k'))).out.trim()
  writeFileSync(at('a.yaml'), CURL)
  const signed = await run('export', at('a.yaml'), '--sign', at('k'), '--name', 'acme', '--version', '7')
  assert.deepEqual([signed.exitCode, signed.err], [0, ''])
  const feed = openFeed(Buffer.from(signed.out), 'acme', [parseFeedKey(key)])
  assert.deepEqual([feed.version, feed.software[0]!.signatures.length], [7, 1])
  assert.ok(Math.abs(feed.createdMs - Date.now()) < 60_000)
  writeFileSync(at('acme.json'), signed.out)
  const verified = await run('feed-verify', at('acme.json'), '--name', 'acme', '--key', key)
  assert.match(verified.out, /^acme: version 7, made \S+, expires never: 1 software with 1 signature\n$/)
  const other = (await run('feed-key', at('other'))).out.trim()
  const refused = await run('feed-verify', at('acme.json'), '--name', 'acme', '--key', other)
  assert.deepEqual([refused.exitCode, refused.out], [1, ''])
  assert.match(refused.err, /acme\.json: no key of the configuration has signed it/)
  assert.equal((await run('feed-verify', at('acme.json'), '--name', 'rival', '--key', key)).exitCode, 1)
})

test('with two keys, an expiry and a file of its own', async (t) => {
  const { at, run, folder } = bench(t)
  const keys = [(await run('feed-key', at('k'))).out, (await run('feed-key', at('l'))).out]
  writeFileSync(at('a.yaml'), CURL)
  writeFileSync(at('acme.json'), 'the one before')
  const args = [...['--sign', at('k'), '--sign', at('l'), '--name', 'acme'], '--output', at('acme.json')]
  const made = await run('export', at('a.yaml'), ...args, '--version', '7', '--expires', '30d')
  assert.match(made.out, /^acme: version 7/)
  for (const key of keys) {
    const feed = openFeed(readFileSync(at('acme.json')), 'acme', [parseFeedKey(key.trim())])
    assert.ok(Math.abs(feed.expiresMs - Date.now() - 30 * 86_400_000) < 60_000)
  }
  await run('export', at('a.yaml'), ...args, '--version', '8', '--expires', '2030-01-01T00:00:00+01:00')
  const feed = openFeed(readFileSync(at('acme.json')), 'acme', [parseFeedKey(keys[0]!.trim())])
  assert.equal(feed.expiresMs, Date.parse('2029-12-31T23:00:00Z'))
  assert.deepEqual(readdirSync(folder).sort(), ['a.yaml', 'acme.json', 'k', 'l'])
})

test('refuses to publish invalid signatures', async (t) => {
  const { at, run } = bench(t)
  await run('feed-key', at('k'))
  writeFileSync(at('a.yaml'), CURL)
  writeFileSync(at('bad.yaml'), '- {id: x, kind: tool}\n')
  const good = { '--sign': at('k'), '--name': 'acme', '--version': '7' }
  const sign = (more: Record<string, string | null>, file = at('a.yaml')) => {
    const options = Object.entries({ ...good, ...more }).filter(([, value]) => value !== null)
    return run('export', file, ...(options.flat() as string[]))
  }
  assert.equal((await sign({})).exitCode, 0)
  for (const [more, exitCode, expected] of [
    [{ '--sign': null }, 2, /--sign is missing/],
    [{ '--name': null }, 2, /--name is missing/],
    [{ '--name': 'a@b' }, 2, /--name must have/],
    [{ '--version': '0' }, 2, /--version must be/],
    [{ '--version': '1.5' }, 2, /--version must be/],
    [{ '--expires': '0' }, 2, /--expires must be/],
    [{ '--expires': 'soon' }, 1, /expires: is "soon"; expected a time/],
    [{ '--sign': at('a.yaml') }, 1, /a\.yaml holds no private key/],
    [{ '--sign': at('none') }, 1, /none cannot be read \(ENOENT\)/],
    [{ '--output': at('none/x') }, 1, /cannot be written \(ENOENT\)/],
  ] as const) {
    const said = await sign(more)
    assert.deepEqual([said.exitCode, said.out], [exitCode, ''], said.err)
    assert.match(said.err, expected)
  }
  const bad = await sign({}, at('bad.yaml'))
  assert.deepEqual([bad.exitCode, bad.out], [1, ''])
  assert.match(bad.err, /bad\.yaml:1:3: software "x": needs `name`/)
  chmodSync(at('k'), 0o644)
  assert.match((await sign({})).err, /warning: every user on this machine can read .*k$/m)
})

test('back by one version, further, and forward again', async (t) => {
  const { publish, run, config, versions } = await kept(t)
  for (const version of [1, 2, 3]) await publish(version)
  assert.deepEqual(await versions(), ['3 in use', '2 kept', '1 kept'])
  const back = await run('rollback', 'acme', ...config)
  assert.equal(back.exitCode, 0, back.err)
  assert.match(back.out, /^acme: version 2, made \S+, is in use, and none that is newer, until --unpin\n$/)
  assert.deepEqual(await versions(), ['3 kept', '2 pinned', '1 kept'])
  await run('rollback', 'acme', ...config)
  assert.deepEqual(await versions(), ['3 kept', '2 kept', '1 pinned'])
  const further = await run('rollback', 'acme', ...config)
  assert.deepEqual([further.exitCode, further.out], [1, ''])
  assert.match(further.err, /there is no older version of acme here; kept: 3, 2, 1/)
  assert.match((await run('rollback', 'acme', '--to', '3', ...config)).out, /version 3/)
  assert.deepEqual(await versions(), ['3 pinned', '2 kept', '1 kept'])
  const forward = await run('rollback', 'acme', '--unpin', ...config)
  assert.equal(forward.out, 'acme: no longer pinned; version 3 is in use\n')
  assert.deepEqual(await versions(), ['3 in use', '2 kept', '1 kept'])
})

test('a rollback that cannot be', async (t) => {
  const { publish, run, config, versions, file } = await kept(t)
  await publish(1)
  await publish(2)
  for (const [args, exitCode, expected] of [
    [['acmee'], 1, /no feed of the configuration is called "acmee" \(did you mean "acme"\?\)/],
    [['acme', '--to', '9'], 1, /version 9 of acme is not here; kept: 2, 1/],
    [['acme', '--to', 'x'], 2, /--to must be the number/],
    [['acme', '--to', '1', '--unpin'], 2, /leave one out/],
  ] as const) {
    const said = await run('rollback', ...args, ...config)
    assert.equal(said.exitCode, exitCode)
    assert.match(said.err, expected)
  }
  writeFileSync(file(1), 'tampered')
  const tampered = await run('rollback', 'acme', '--to', '1', ...config)
  assert.deepEqual([tampered.exitCode, tampered.out], [1, ''])
  assert.match(tampered.err, /is not JSON/)
  assert.match((await run('rollback', 'acme', ...config)).err, /no older version/)
  assert.deepEqual(await versions(), ['2 in use', '1 invalid'])
  const table = await run('feeds', ...config)
  assert.match(table.out, /^FEED +VERSION +MADE/)
  assert.match(table.out, /^acme +1 +the envelope is not JSON in U/m)
})

/** The subcommands at work, and a folder for files. */
function bench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sign-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const summary = ''
  const command: Command = {
    name: 's',
    summary,
    subcommands: [exportSignatures, feedKey, feedVerify, listFeeds, rollback],
  }
  const entries = [{ name: 's', summary, load: async () => command }]
  return {
    folder,
    at: (name: string) => join(folder, name),
    async run(...argv: readonly string[]) {
      const io = memoryIo()
      const exitCode = await runCli(entries, ['s', ...argv], io)
      return { exitCode, out: io.out, err: io.err }
    },
  }
}

/** A data folder with versions of a feed. */
async function kept(t: Test) {
  const { at, run } = bench(t)
  const key = (await run('feed-key', at('k'))).out.trim()
  writeFileSync(at('a.yaml'), CURL)
  const feed = `{name: acme, url: "https://feeds.example.test/", public_keys: "${key}"}`
  writeFileSync(at('g.yaml'), `proxy: {upstream: "http://a"}\ndata: {dir: data}\nfeeds: [${feed}]\n`)
  const file = (version: number) => at(`data/feeds/acme@${version}.json`)
  const config = ['--config', at('g.yaml')]
  const store = new FeedStore(at('data/feeds'), [], silentLog())
  return {
    ...{ run, config, file },
    async publish(version: number) {
      const args = ['--sign', at('k'), '--name', 'acme', '--version', String(version)]
      const { out } = await run('export', at('a.yaml'), ...args)
      await store.keep(openFeed(Buffer.from(out), 'acme', [parseFeedKey(key)]), Buffer.from(out))
    },
    async versions(): Promise<string[]> {
      const { out } = await run('feeds', '--json', ...config)
      return out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .map(({ version, state }) => `${version} ${state}`)
    },
  }
}
