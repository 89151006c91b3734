import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { files, loadSoftware } from '../../src/runtime/signatures/signature-files.ts'
import { exported } from '../../src/commands/signatures/signatures-export.ts'
import { ConfigFault, readSource } from '../../src/config/source.ts'
import { alpn, clientHello, extension, records, serverName } from '../vectors/hello-builder.ts'
import { memoryIo } from './memory-io.ts'

const TOOLS = `# Tools and libraries.

- id: curl
  name: cURL
  kind: tool   # what people type
  aliases: [curl-cli]
  vendor: "the curl project"
  signatures:
    - {user_agent: curl/, source: its manual, date: 2026-11-20}  # always
    # nothing more is known

# Node's own client
- name: Node.js
  id: node
  kind: tool
  description: |
    What Node says
    of itself.
`
const BROWSERS = `- id: chrome
  name: Chrome
  kind: browser
  engine: blink
  gives_way: 1
  aliases: [chromium]
  signatures:
    - user_agent: chrome/
      source: a capture
      date: 2026-11-20
      observations: 7

- id: firefox
  name: Firefox
  kind: browser
  engine: gecko
  aliases: [firefox-esr]
- {id: gptbot, name: GPTBot, kind: agent, category: crawler, vendor: OpenAI, aliases: [shared]}
- id: other-bot
  name: Other
  kind: agent
  category: crawler
  purpose: { is: training, source: other.test, date: 2026-11-20 }
  aliases: [shared]
  signatures: [ { header: x-other, value: "*", source: s, date: 2026-11-20 } ]
`

test('validate counts what there is', async (t) => {
  const { folder, at, signatures } = workbench(t)
  at('tools.yaml', TOOLS)
  at('browsers.yml', BROWSERS)
  at('.draft.yaml', 'neither read')
  at('notes.txt', 'nor this')
  const { exitCode, out, err } = await signatures('validate', folder)
  assert.equal(out, '6 software (2 agents, 2 tools, 2 browsers) with 3 signatures in 2 files\n')
  assert.deepEqual([exitCode, err], [0, ''])
  assert.deepEqual(JSON.parse((await signatures('validate', '--json', folder)).out), {
    ...{ problems: [], software: 6, kinds: { agent: 2, tool: 2, browser: 2 }, signatures: 3, files: 2 },
  })
  const none = await signatures('validate', '--json', join(folder, 'none.yaml'))
  assert.deepEqual([none.exitCode, none.err], [1, ''])
  assert.match(JSON.parse(none.out).problems[0].where, /none\.yaml$/)
})

test('validate says everything that is wrong, in all files, and where', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const first = at('a.yaml', TOOLS)
  const twice = at(
    'b.yaml',
    '- id: node\n  name: 7\n  kind: tool\n- {id: x, kind: robot}\n- {id: x, name: X, kind: tool}\n',
  )
  const bad = at(
    'c.yaml',
    '- id: y\n  name: Y\n  kind: tool\n  signatures: [{ja4: t13, source: s, date: today}]\n',
  )
  const broken = at('d.yaml', '- id: [\n')
  const mapping = at('e.yaml', 'id: z\n')
  const binary = join(folder, 'f.yaml')
  writeFileSync(binary, Buffer.from([0x2d, 0x20, 0x0a, 0x20, 0xff, 0x0a]))
  mkdirSync(join(folder, 'g.yaml'))
  const { exitCode, out, err } = await signatures('validate', folder, '/there/is/none.yaml')
  assert.deepEqual([exitCode, out], [1, ''])
  const lines = err.trimEnd().split('\n')
  const expected = [
    `${twice}:1:3: [0].id: "node" is taken: it stands at ${first}:14:3`,
    `${twice}:5:4: [2].id: "x" is taken: it stands at ${twice}:4:4`,
    new RegExp(`^${twice}:2:3: .*name: is 7; expected a name$`),
    `${twice}:4:3: software "x": needs \`name\``,
    `${twice}:4:11: software "x": kind: is "robot"; expected agent, tool, browser`,
    `${bad}:4:17: software "y": signatures[0].ja4: "t13" is not a valid ja4`,
    `${bad}:4:38: software "y": signatures[0].date: is "today"; expected a day, like 2026-11-21`,
    new RegExp(`^${broken}:\\d:\\d: `),
    `${mapping}:1:1: is a mapping; expected a list of software`,
    `${binary}:2: is not UTF-8`,
    `${join(folder, 'g.yaml')}: is a folder`,
    '/there/is/none.yaml: no such file',
  ]
  for (const each of expected) {
    const isSaid = lines.some((line) => (typeof each === 'string' ? line === each : each.test(line)))
    assert.ok(isSaid, `${each} is not in\n${err}`)
  }
  assert.equal(lines.at(-1), `${lines.length - 1} problems`)
})

test('a file without an end, or far too large, is refused before it fills memory', async (t) => {
  const { folder, signatures } = workbench(t)
  const large = join(folder, 'large.yaml')
  writeFileSync(large, '')
  truncateSync(large, 1024 ** 4)
  for (const file of [large, '/dev/zero']) {
    const { exitCode, err } = await signatures('validate', file)
    assert.deepEqual([exitCode, err], [1, `${file}: is larger than 16777216 bytes\n1 problem\n`])
  }
})

test('a file without read permission', {
  skip: process.getuid?.() === 0 && 'root may read it',
}, async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('a.yaml', TOOLS)
  chmodSync(file, 0)
  assert.match((await signatures('validate', file)).err, /a\.yaml: no permission to read it/)
})

test('the folder that comes with Gatehouse is what is read by default', async () => {
  const [first] = await files(null)
  assert.ok(first === undefined || first.startsWith(join(import.meta.dirname, '../../signatures')), first)
})

test('files: sorted, each once, and what is missing as well, for it may come', async (t) => {
  const { folder, at } = workbench(t)
  const [b, a] = [at('b.yaml', '[]'), at('a.yaml', '')]
  mkdirSync(join(folder, '..data'))
  symlinkSync('b.yaml', join(folder, 'c.yml'))
  assert.deepEqual(await files([folder, b, '/none']), [a, b, join(folder, 'c.yml'), '/none'])
  assert.deepEqual(await loadSoftware([folder]), [])
})

test('list: says that no software matches, and prints an empty list as JSON', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('t.yaml', TOOLS)
  const said = await signatures('list', file, '--q', 'no-such-name')
  assert.deepEqual([said.exitCode, said.out, said.err], [0, '', 'No software is like this.\n'])
  const json = await signatures('list', file, '--q', 'no-such-name', '--json')
  assert.deepEqual([json.exitCode, json.out, json.err], [0, '', ''])
})

test('list: a table by id', async (t) => {
  const { at, signatures } = workbench(t)
  const { out, exitCode } = await signatures('list', at('b.yaml', BROWSERS), at('t.yaml', TOOLS))
  assert.equal(exitCode, 0)
  assert.deepEqual(out.split('\n'), [
    'ID         NAME     KIND     CATEGORY  PURPOSE   SIGNATURES  DECISIVE',
    'chrome     Chrome   browser                               1         0',
    'curl       cURL     tool                                  1         0',
    'firefox    Firefox  browser                               0         0',
    'gptbot     GPTBot   agent    crawler                      0         0',
    'node       Node.js  tool                                  0         0',
    'other-bot  Other    agent    crawler   training           1         0',
    '',
  ])
})

test('list: what is asked for, as JSON', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('all.yaml', BROWSERS + TOOLS)
  const ids = async (...options: string[]) => {
    const { out } = await signatures('list', '--json', ...options, file)
    return out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).id)
  }
  assert.deepEqual(await ids('--kind', 'browser'), ['chrome', 'firefox'])
  assert.deepEqual(await ids('--category', 'crawler'), ['gptbot', 'other-bot'])
  assert.deepEqual(await ids('--purpose', 'training'), ['other-bot'])
  assert.deepEqual(await ids('--purpose', 'search'), [])
  assert.equal((await signatures('list', '--purpose', 'traning', file)).exitCode, 2)
  assert.deepEqual(await ids('--q', 'openai'), ['gptbot'])
  assert.deepEqual(await ids('--q', 'CHROMIUM'), ['chrome'])
  assert.deepEqual(await ids('--q', 'of itself', '--kind', 'tool'), ['node'])
  assert.deepEqual(await ids('--q', 'no-such-name'), [])
  const { out } = await signatures('list', '--json', '--q', 'gptbot', file)
  assert.deepEqual(JSON.parse(out), {
    ...{
      id: 'gptbot',
      name: 'GPTBot',
      kind: 'agent',
      category: 'crawler',
      purpose: [],
      vendor: 'OpenAI',
      aliases: ['shared'],
    },
    signatures: 0,
    decisive: 0,
  })
  assert.equal((await signatures('list', '--kind', 'brwser', file)).exitCode, 2)
  assert.match(
    (await signatures('list', at('bad.yaml', '- 1'))).err,
    /^gatehouse signatures list: .*bad\.yaml:1:3: /,
  )
})

const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const EXPLAINED = `
- id: a
  name: A
  kind: tool
  aliases: [alias-of-a]
  verification: {reverse_dns: [.a.test]}
  signatures:
    - {ja4: ${JA4}, source: lab, date: 2026-11-20, observations: 30}
    - {ja4h: ge11nn05enus_974ebe531c03_*_*, source: lab, date: 2026-11-20, observations: 4}
    - {user_agent: a-tool, source: its page, date: 2026-11-19}
    - {http2: "1:65536|15663105|0|m,a,s,p", source: lab, date: 2026-11-20, observations: 2}
- id: b
  name: "B\\e[2J"
  kind: tool
  signatures:
    - {ja4: ${JA4}, source: field, date: 2026-11-21, observations: 10}
    - {ja4: t13d1517h2_8daaf6152771_000000000000, source: field, date: 2026-11-21, observations: 5}
    - {http2: "3:100|15663105|0|m,p,a,s", source: field, date: 2026-11-21}
- id: c
  name: C
  kind: tool
  signatures:
    - {ja4: "*_8daaf6152771_*", source: field, date: 2026-11-21}
    - {user_agent: c, match: whole, source: s, date: 2026-11-21}
- id: d
  name: D
  kind: agent
  category: crawler
  verification:
    ranges_url: https://d.test/ips.json
    ranges: {source: its page, date: 2026-11-19, partial: true, prefixes: [192.0.2.0/24, '2001:db8::/32']}
- id: e
  name: E
  kind: agent
  category: custom
  verification: {ranges_url: https://d.test/ips.json}
`

test('explain: a software', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('e.yaml', EXPLAINED)
  for (const name of ['a', 'alias-of-a']) {
    const { out, exitCode } = await signatures('explain', '--from', file, name)
    assert.equal(exitCode, 0)
    for (const said of [
      /^reverse DNS {4}\.a\.test$/m,
      new RegExp(`^ja4 +30 +2026-11-20 +lab +${JA4}$`, 'm'),
      /^user-agent +- +2026-11-19 +its page +a-tool$/m,
    ])
      assert.match(out, said)
  }
  const { out: addresses } = await signatures('explain', '--from', file, 'd')
  assert.match(addresses, /^ranges {9}192\.0\.2\.0\/24, 2001:db8::\/32 and more \(2026-11-19, its page\)$/m)
  const { out } = await signatures('explain', '--from', file, 'b')
  assert.match(out, /^name {11}B\\u\{1b\}\[2J$/m)
  const { text, parts } = JSON.parse((await signatures('explain', '--json', '--from', file, 'a')).out)
  assert.deepEqual([text, parts.length, parts[0].facts['reverse DNS']], ['a', 1, '.a.test'])
  assert.deepEqual(parts[0].rows[0], {
    ...{ signature: 'ja4', seen: '30', measured: '2026-11-20', source: 'lab', pattern: JA4 },
  })
  const whose = JSON.parse((await signatures('explain', '--json', '--from', file, JA4)).out)
  assert.deepEqual(
    whose.parts[0].rows.map(({ id, share }: { id: string; share: string }) => [id, share]),
    [
      ['a', '75.0 %'],
      ['b', '25.0 %'],
      ['c', '0.0 %'],
    ],
  )
})

test('list and explain: decisive signatures', async (t) => {
  const { at, folder, signatures } = workbench(t)
  const agent = '- {id: a, name: A, kind: agent, category: custom, signatures: ['
  const decided = `{ja4: ${JA4}, decisive: true, source: lab, date: 2026-11-20, observations: 3}`
  at('b.yaml', `${agent}${decided}, {ja4s: t130200_1301_a56c5b993250, source: lab, date: 2026-11-20}]}`)
  const line = { software: 'a', source: 'lab', date: '2026-11-20' }
  const lines = [
    { ...line, ja4: JA4.replace(/.$/, '3'), decisive: true },
    { ...line, ja4: JA4.replace(/.$/, '4') },
  ]
  at('c.jsonl', lines.map((each) => JSON.stringify(each)).join('\n'))
  const { signatures: all, decisive } = JSON.parse((await signatures('list', '--json', folder)).out)
  assert.deepEqual([all, decisive], [4, 2])
  for (const text of ['a', JA4]) {
    const { out } = await signatures('explain', '--from', folder, text)
    assert.match(out, new RegExp(`${JA4} \\(decisive\\)$`, 'm'))
    assert.match(out, /_e5627efa2ab3 \(decisive\)$/m)
    assert.match(out, /_e5627efa2ab4$/m)
  }
})

test('explain: an address', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('e.yaml', EXPLAINED)
  for (const [address, range] of [
    ['192.0.2.9', '192\\.0\\.2\\.0/24'],
    ['::ffff:192.0.2.9', '192\\.0\\.2\\.0/24'],
    ['2001:DB8::9', '2001:db8::/32'],
  ] as const) {
    const { out } = await signatures('explain', '--from', file, address)
    for (const id of ['d', 'e'])
      assert.match(out, new RegExp(`^${id} +${range} +2026-11-19 +its page$`, 'm'), address)
  }
  for (const address of ['192.0.3.0', '2001:db9::'])
    assert.equal(
      (await signatures('explain', '--from', file, address)).out,
      'Agents that publish this address:\nno known software\n',
    )
})

test('explain: the owners of a fingerprint, their shares, and the owners of its parts', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('e.yaml', EXPLAINED)
  const explain = async (text: string) => {
    const { out } = await signatures('explain', '--from', file, text)
    const [whole, parts] = out.split('\n\n')
    return { whole: whole!.split('\n').slice(2), parts: parts!.trimEnd().split('\n').slice(2) }
  }
  const ja4 = await explain(JA4)
  assert.deepEqual(
    ja4.whole.map((line) => line.split(/ {2,}/).slice(0, 4)),
    [
      ['a', 'tool', '75.0 %', '30'],
      ['b', 'tool', '25.0 %', '10'],
      ['c', 'tool', '0.0 %', '-'],
    ],
  )
  // The third part is of no extensions at all, which is nothing to have in common.
  assert.deepEqual(ja4.parts, ['b   tool  b         5  2026-11-21  t13d1517h2_8daaf6152771_000000000000'])
  const none = await explain('t13d1517h2_111111111111_000000000000')
  assert.deepEqual([none.whole, none.parts.length], [[], 1])
  const http2 = await explain('1:65536|15663105|0|m,a,s,p')
  assert.match(http2.whole.join(), /^a .*100\.0 %/)
  assert.deepEqual(http2.parts, ['b   tool  window     -  2026-11-21  3:100|15663105|0|m,p,a,s'])
  const ja4h = await explain('ge11nn05enus_974ebe531c03_111111111111_222222222222')
  assert.match(ja4h.whole.join(), /^a .*ge11nn05enus_974ebe531c03_\*_\*$/)
})

test('explain: an unknown id', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('e.yaml', EXPLAINED)
  const explain = async (text: string) => (await signatures('explain', '--from', file, text)).out
  for (const typed of ['alias-fo-a', 'alias-of', 'ALIAS-OF-B'])
    assert.match(
      await explain(typed),
      /^No software has this id or alias \(did you mean "alias-of-a"\?\)\.$/m,
      typed,
    )
  for (const typed of ['something-else', 'Mozilla/5.0 (alias-of-a)'])
    assert.doesNotMatch(await explain(typed), /did you mean/, typed)
  // The shortest of those that begin so.
  assert.match((await signatures('explain', 'cur')).out, /did you mean "curl"/)
})

test('explain: a User-Agent', async (t) => {
  const { at, signatures } = workbench(t)
  const file = at('e.yaml', EXPLAINED)
  const explain = async (...words: string[]) => (await signatures('explain', '--from', file, ...words)).out
  assert.match(
    await explain('Some', 'A-Tool/2'),
    /^As a User-Agent, this names A \(a, tool\)\.\n.*\na +tool +a-tool +character 6 /,
  )
  assert.match(await explain('C'), /names C \(c, tool\)\.\n.*\nc +tool +c +all of it /)
  assert.match(
    await explain('c/1'),
    /names no known software\.\nIts first product has the name of C \(c\)\.\nIt matches no pattern\.\n$/,
  )
  assert.match(await explain('c1/1'), /names no known software\.\nIt matches no pattern\.\n$/)
  assert.match(await explain('Somebot/1'), /calls itself a bot/)
  assert.equal((await signatures('explain')).exitCode, 2)
})

test('import: what is measured is added, and nothing else changes', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS, 0o640)
  const browsers = at('own/browsers.yaml', BROWSERS)
  const rows = [
    row('curl', { requests: [request({})] }),
    row('curl-cli', { ts: '2026-11-22T01:00:00Z', requests: [request({}), request({ method: 'POST' })] }),
    row('node', {}),
    row('chromium', {
      h2: OPENING,
      requests: [navigation(), navigation([['cookie', 'a=b; c=d']]), request({})],
    }),
    row('firefox', {
      requests: [
        request({
          http: '1.0',
          headers: [
            ['Accept', 'text/html,*/*'],
            ['A-B', '1'],
          ],
        }),
      ],
    }),
    row('gptbot', { client_hello_hex: 'ff' }),
    row('other-bot', {}),
    row('nobody\u001b', {}),
    row('nobody\u001b', {}),
    row('shared', {}),
  ]
  const corpus = at('rows.jsonl', `\n${rows.map((each) => JSON.stringify(each)).join('\n')}`)
  const dry = await signatures('import', '--dry-run', '--into', join(folder, 'own'), corpus)
  assert.match(dry.out, /^Nothing is written: --dry-run\.$/m)
  const { changes, unknown, written } = JSON.parse(
    (await signatures('import', '--dry-run', '--json', '--into', join(folder, 'own'), corpus)).out,
  )
  assert.deepEqual(changes[0], { path: browsers, id: 'chrome', is_new: false, added: 8, replaced: 0 })
  assert.ok(unknown.includes('nobody\u001b') && !written)
  assert.equal(readFileSync(tools, 'utf8') + readFileSync(browsers, 'utf8'), TOOLS + BROWSERS)

  const done = await signatures('import', '--into', join(folder, 'own'), corpus)
  assert.equal(done.exitCode, 0, done.err)
  assert.equal(
    done.out,
    `${browsers}: chrome: 8 added
${browsers}: firefox: 4 added
${browsers}: other-bot: 2 added
${tools}: curl: 4 added
${tools}: node: 2 added
No software has these names as its id, or alone as an alias; nothing is added for them:
  nobody\\u{1b}: 2 connections
  shared: 1 connection
`,
  )
  assertKept(TOOLS, readFileSync(tools, 'utf8'))
  assertKept(BROWSERS.replace(/ \]\n$/, '\n'), readFileSync(browsers, 'utf8'))
  assert.equal(statSync(tools).mode & 0o777, 0o640)
  assert.deepEqual(readdirSync(join(folder, 'own')), ['browsers.yaml', 'tools.yaml'])

  const software = new Map(
    (await loadSoftware([join(folder, 'own')])).map((each) => [each.id as string, each]),
  )
  const measured = (id: string) =>
    software.get(id)!.signatures.filter(({ source }) => source === 'rows.jsonl')
  const said = (id: string) =>
    measured(id).map(({ source: _source, ...signature }) => JSON.stringify(Object.values(signature)))
  // The last column: whether it is decisive, which measured ones are not.
  assert.deepEqual(said('curl'), [
    `["ja4","${HELLO_JA4}","2026-11-22",2,false]`,
    `["stable","${HELLO_STABLE}","2026-11-22",2,false]`,
    '["ja4h","ge11nn020000_818f42cc3fd7_*_*","2026-11-22",2,false]',
    '["ja4h","po11nn020000_818f42cc3fd7_*_*","2026-11-22",1,false]',
  ])
  const orders = measured('chrome').flatMap((each) => (each.type === 'header-order' ? [each] : []))
  assert.deepEqual(
    orders.map(({ protocol, names, observations }) => [protocol, names.join(), observations]),
    [
      ['h2', 'user-agent,sec-fetch-mode,accept,cookie', 1],
      ['h2', 'user-agent,sec-fetch-mode,accept', 1],
    ],
  )
  const [http2] = measured('chrome').filter(({ type }) => type === 'http2')
  assert.deepEqual(http2, {
    ...{ type: 'http2', value: '1:65536|15663105|0|m,a', isDecisive: false },
    ...{ source: 'rows.jsonl', date: '2026-11-21', observations: 1 },
  })
  assert.deepEqual(
    measured('firefox').flatMap((each) =>
      each.type === 'header-order' ? [each.protocol, ...each.names] : [],
    ),
    ['h1', 'accept', 'a-b'],
  )
  assert.deepEqual(said('gptbot'), [])

  const before = readFileSync(tools, 'utf8') + readFileSync(browsers, 'utf8')
  const again = await signatures('import', '--into', join(folder, 'own'), corpus)
  assert.match(again.out, /^Nothing changes\.$/m)
  assert.equal(readFileSync(tools, 'utf8') + readFileSync(browsers, 'utf8'), before)
})

test('import: of one source the last import counts, and sources stand side by side', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS)
  const one = at('one.jsonl', JSON.stringify(row('node', {})))
  const three = at(
    'three.jsonl',
    Array(3)
      .fill(JSON.stringify(row('node', { ts: '2026-11-25T00:00:00Z' })))
      .join('\n'),
  )
  const run = (...argv: string[]) => signatures('import', '--into', join(folder, 'own'), ...argv)
  const counts = async () => {
    const node = (await loadSoftware([tools])).find(({ id }) => id === 'node')!
    return node.signatures
      .filter(({ type }) => type === 'ja4')
      .map(({ source, date, observations }) => `${source} ${date} ${observations}`)
  }
  await run('--source', 'the lab', one)
  assert.deepEqual(await counts(), ['the lab 2026-11-21 1'])
  const { out } = await run('--source', 'the lab', three)
  assert.equal(out, `${tools}: node: 2 replaced\n`)
  assert.deepEqual(await counts(), ['the lab 2026-11-25 3'])
  await run('--source', 'the lab', one, three)
  assert.deepEqual(await counts(), ['the lab 2026-11-25 4'])
  await run(one)
  assert.deepEqual(await counts(), ['the lab 2026-11-25 4', 'one.jsonl 2026-11-21 1'])
  assertKept(TOOLS, readFileSync(tools, 'utf8'))
  assert.equal((await run('--source', '', one)).exitCode, 2)
})

test('import: every bad line is named, and then nothing is written', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS)
  const good = JSON.stringify(row('curl', {}))
  const bad = ['{', '[]', '7', '{"client": 1}', JSON.stringify(row('curl', { client_hello_hex: 'x' }))]
  const corpus = at('rows.jsonl', [good, ...bad, good].join('\n'))
  const { exitCode, out, err } = await signatures(
    'import',
    '--into',
    join(folder, 'own'),
    corpus,
    '/there/is/none',
  )
  assert.deepEqual([exitCode, out], [1, ''])
  const named = new Set(err.match(/rows\.jsonl:\d+/g))
  assert.deepEqual(
    [...named],
    ['rows.jsonl:2', 'rows.jsonl:3', 'rows.jsonl:4', 'rows.jsonl:5', 'rows.jsonl:6'],
  )
  assert.match(err, /\/there\/is\/none: no such file/)
  assert.equal(readFileSync(tools, 'utf8'), TOOLS)

  const noise = at('noise.jsonl', 'x\n'.repeat(100_000))
  assert.equal((await signatures('import', '--into', join(folder, 'own'), noise)).err.split('\n').length, 101)
  const many = Array.from({ length: 1001 }, (_, i) =>
    JSON.stringify(row('curl', {}, [0xff00 + (i % 256), i])),
  )
  const varied = at('varied.jsonl', many.join('\n'))
  const refused = await signatures('import', '--into', join(folder, 'own'), varied)
  assert.match(refused.err, /varied\.jsonl:501: "curl" has more than 1000 different values/)
  assert.equal(readFileSync(tools, 'utf8'), TOOLS)
})

test('import: what cannot be imported into, or from', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const corpus = at('rows.jsonl', JSON.stringify(row('curl', {})))
  const own = join(folder, 'own')
  const file = at('own/tools.yaml', '- {id: curl, name: cURL}\n')
  const errors = async (...argv: string[]) => (await signatures('import', ...argv)).err
  assert.match(await errors('--into', own, corpus), /tools\.yaml:1:3: software "curl": needs `kind`/)
  assert.match(await errors('--into', file, corpus), /tools\.yaml: is not a folder/)
  assert.match(await errors('--into', '/there/is/none', corpus), /\/there\/is\/none: no such file/)
  assert.match(
    await errors('--into', at('x/a.yaml', '') && join(folder, 'x'), folder),
    /gatehouse-signatures-\w+: is a folder/,
  )
  assert.match(await errors('--into', join(folder, 'x'), '/dev/null.yaml'), /\/dev\/null\.yaml: no such file/)

  const shared = '- &a {ja4: t13d1516h2_8daaf6152771_e5627efa2ab1, source: s, date: 2026-11-21}'
  const anchored = `- id: one\n  name: One\n  kind: tool\n  signatures:\n    ${shared}\n`
  const aliased = `${anchored}- id: curl\n  name: cURL\n  kind: tool\n  signatures:\n    - *a\n`
  writeFileSync(file, aliased)
  assert.match(await errors('--into', own, corpus), /tools\.yaml: software "curl" is written with anchors/)
  assert.equal(readFileSync(file, 'utf8'), aliased)

  const others = at('others/tools.yaml', '- {id: other, name: Other, kind: tool}\n')
  for (const [text, from] of [
    // An explicit null: a list behind it would not be valid YAML.
    ['~\n', others],
    // An anchor at a key moves what is added to a column in which it is a part of the description.
    ['- &x id: curl\n  name: cURL\n  kind: tool\n  description: |\n   a\n', corpus],
  ] as const) {
    writeFileSync(file, text)
    assert.match(await errors('--into', own, from), /tools\.yaml: is written in a way that leaves no place/)
    assert.equal(readFileSync(file, 'utf8'), text)
  }
})

test('import: a folder that cannot be written to stays as it was', {
  skip: process.getuid?.() === 0 && 'root may write everywhere',
}, async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS)
  const corpus = at('rows.jsonl', JSON.stringify(row('curl', {})))
  chmodSync(join(folder, 'own'), 0o555)
  const { exitCode, err } = await signatures('import', '--into', join(folder, 'own'), corpus)
  chmodSync(join(folder, 'own'), 0o755)
  assert.equal(exitCode, 1)
  assert.match(err, /cannot be written/)
  assert.equal(readFileSync(tools, 'utf8'), TOOLS)
})

test('import: when one of two files cannot be written, neither is', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const own = join(folder, 'own')
  const browsers = at('own/browsers.yaml', BROWSERS)
  // Nothing can be put beside it: the name of that would be longer than names can be.
  const tools = at(`own/${'t'.repeat(250)}.yaml`, TOOLS)
  const rows = [row('curl', {}), row('chrome', {})].map((each) => JSON.stringify(each))
  const { exitCode, out, err } = await signatures('import', '--into', own, at('rows.jsonl', rows.join('\n')))
  assert.deepEqual([exitCode, out], [1, ''])
  assert.match(err, /\.tmp cannot be written: ENAMETOOLONG/)
  assert.equal(readFileSync(browsers, 'utf8') + readFileSync(tools, 'utf8'), BROWSERS + TOOLS)
  assert.equal(readdirSync(own).length, 2)
})

test('import: signatures of others', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS)
  symlinkSync('tools.yaml', join(folder, 'link'))
  const theirs = `# Theirs
- id: curl
  name: Not ours
  kind: tool
  signatures:
    - {user_agent: curl/, source: its manual, date: 2026-11-29, observations: 3}
    - {ja4: ${JA4}, source: them, date: 2026-11-29, observations: 5}
`
  const newOnes = '# All new\n- {id: new-1, name: One, kind: tool} # one\n'
  const mixed = at('tools.yaml', `${theirs}- {id: new-2, name: "Two: 2", kind: tool, aliases: [x, y]}\n`)
  const run = () => signatures('import', '--into', join(folder, 'own'), at('new.yaml', newOnes), mixed)
  const { out, err } = await run()
  assert.equal(
    out,
    `${tools}: curl: 1 added, 1 replaced\n${tools}: new-2: new\n${join(folder, 'own/new.yaml')}: new-1: new\n`,
    err,
  )
  assert.equal(readFileSync(join(folder, 'own/new.yaml'), 'utf8'), newOnes)
  const text = readFileSync(tools, 'utf8')
  assert.ok(
    text.includes('{user_agent: curl/, source: its manual, date: 2026-11-29, observations: 3}  # always\n'),
    text,
  )
  assert.ok(
    text.endsWith('    of itself.\n- id: new-2\n  name: "Two: 2"\n  kind: tool\n  aliases: [ x, y ]\n'),
    text,
  )
  assert.ok(!text.includes('Not ours'))
  assert.equal((await run()).out, 'Nothing changes.\n')
})

test('import: a link is followed, and files end in whatever they end', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const target = at('real/tools.yaml', '# CRLF\r\n- id: curl\r\n  name: cURL # the name\r\n  kind: tool')
  mkdirSync(join(folder, 'own'))
  symlinkSync('../real/tools.yaml', join(folder, 'own/tools.yaml'))
  at('own/empty.yaml', '# none\n')
  at('own/none.yaml', '[]\n')
  at('own/flow.yaml', '[{id: f, name: F, kind: tool}]\n')
  const newcomer = (id: string) => `- {id: ${id}, name: N, kind: tool}\n`
  const corpus = at('rows.jsonl', ['curl', 'f'].map((client) => JSON.stringify(row(client, {}))).join('\n'))
  const others = ['empty', 'none', 'flow'].map((name) => at(`${name}.yaml`, newcomer(`new-${name}`)))
  const { exitCode, err } = await signatures('import', '--into', join(folder, 'own'), corpus, ...others)
  assert.equal(exitCode, 0, err)
  const text = readFileSync(target, 'utf8')
  assert.ok(
    text.startsWith('# CRLF\r\n- id: curl\r\n  name: cURL # the name\r\n  kind: tool\r\n  signatures:\r\n'),
    text,
  )
  assert.equal(text.split('\n').filter((line) => line.endsWith('\r')).length, 7)
  assert.equal(readFileSync(join(folder, 'own/tools.yaml'), 'utf8'), text)
  assert.match(readFileSync(join(folder, 'own/empty.yaml'), 'utf8'), /^# none\n- id: new-empty\n/)
  assert.match(
    readFileSync(join(folder, 'own/flow.yaml'), 'utf8'),
    /^\[\{id: f, .*\}, \{ id: new-flow, .*\}\]\n$/,
  )
  assert.deepEqual(
    (await loadSoftware([join(folder, 'own')])).map(({ id, signatures }) => `${id} ${signatures.length}`),
    ['new-empty 0', 'f 2', 'new-flow 0', 'new-none 0', 'curl 2'],
  )
})

test('import: JA4H is left out where JA4+ is turned off', async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS)
  const corpus = at('rows.jsonl', JSON.stringify(row('curl', { requests: [request({})] })))
  const io = memoryIo('', { env: { GATEHOUSE_FINGERPRINTS_JA4PLUS: 'false' } })
  await runCli(COMMANDS, ['signatures', 'import', '--into', join(folder, 'own'), corpus], io)
  assert.equal(io.out, `${tools}: curl: 2 added\n`)
  assert.ok(!readFileSync(tools, 'utf8').includes('ja4h'))
  assert.match((await signatures('import', '--into', join(folder, 'own'), corpus)).out, /curl: 1 added/)
})

test('import: the shared corpus, where it is there', {
  skip: !existsSync('../shared/corpus/clients.jsonl') && 'the corpus is not beside the project',
}, async (t) => {
  const { folder, at, signatures } = workbench(t)
  const tools = at('own/tools.yaml', TOOLS)
  at('own/browsers.yaml', BROWSERS)
  const run = () => signatures('import', '--into', join(folder, 'own'), '../shared/corpus/clients.jsonl')
  const { exitCode, out, err } = await run()
  assert.equal(exitCode, 0, err)
  assert.match(out, /^ {2}openai: 47 connections$/m)
  assertKept(TOOLS, readFileSync(tools, 'utf8'))
  assert.match((await run()).out, /^Nothing changes\.$/m)
  const { out: explained } = await signatures(
    ...['explain', '--from', join(folder, 'own'), 't13d1517h2_8daaf6152771_cb7bf5808d99'],
  )
  assert.match(explained, /^chrome +browser +100\.0 % +18 /m)
})

test('export: one document, by id, the same however often', async (t) => {
  const { folder, at, signatures } = workbench(t)
  at('own/tools.yaml', TOOLS)
  at('own/browsers.yaml', BROWSERS)
  at('own/explained.yaml', EXPLAINED)
  const software = await loadSoftware([join(folder, 'own')])
  for (const format of ['yaml', 'json']) {
    const { out } = await signatures('export', '--format', format, join(folder, 'own'))
    const file = at(`all-${format}.yaml`, out)
    assert.deepEqual(
      await loadSoftware([file]),
      [...software].sort((a, b) => (a.id < b.id ? -1 : 1)),
    )
    assert.equal((await signatures('validate', file)).exitCode, 0)
    assert.equal((await signatures('export', '--format', format, file)).out, out)
  }
  assert.ok(
    Array.isArray(JSON.parse((await signatures('export', '--format', 'json', join(folder, 'own'))).out)),
  )
  assert.equal((await signatures('export', at('none.yaml', ''))).out, '[]\n')
})

test('what comes with Gatehouse is in one order, from its files and from the package', async (t) => {
  const { signatures } = workbench(t)
  const ids = (await loadSoftware(null)).map(({ id }) => id)
  const exported = JSON.parse((await signatures('export', '--format', 'json')).out)
  assert.ok(ids.length > 500)
  assert.deepEqual(
    exported.map(({ id }: { id: string }) => id),
    ids,
  )
})

test('export: whatever stands in a text comes back', async () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  const software = fc.record({
    id: fc.constant('x'),
    name: text,
    kind: fc.constant('tool'),
    description: text,
    aliases: fc.array(text, { minLength: 1, maxLength: 3 }),
    signatures: fc.array(
      fc.record({
        header: fc.constant('x-a'),
        value: text,
        source: text,
        date: fc.constant('2026-11-21'),
        observations: fc.nat(),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  })
  fc.assert(
    fc.property(software, fc.constantFrom('yaml' as const, 'json' as const), (document, format) => {
      const list = parseSoftwareList([document])
      assert.deepEqual(parseSoftwareList(readSource(exported(list, format), 'x').value), list)
    }),
    { numRuns: 200 },
  )
})

test('a fault has a code of its own', async (t) => {
  const { at } = workbench(t)
  await assert.rejects(loadSoftware([at('a.yaml', '- 1')]), (error) => {
    return error instanceof ConfigFault && error.code === 'SIGNATURES_INVALID' && error.problems.length === 1
  })
})

/** Every line that was there still is, in its order; but for lists in brackets, which have grown. */
function assertKept(before: string, after: string): void {
  const lines = after.split('\n')
  let at = 0
  for (const line of before.split('\n')) {
    const found = lines.findIndex((each, index) => index >= at && isGrown(line, each))
    assert.notEqual(found, -1, `${JSON.stringify(line)} is gone from\n${after}`)
    at = found + 1
  }
}

function isGrown(before: string, after: string): boolean {
  return (
    before === after || (/^(?:- \{|.*\[ )/.test(before) && after.startsWith(before.replace(/[\]}]+$/, '')))
  )
}

const HELLO = clientHello({ ciphers: [0x1301], extensions: [serverName('a.test'), alpn(Buffer.from('h2'))] })
const HELLO_JA4 = 't12d0102h2_0f2cb44170f4_000000000000'
const HELLO_STABLE = 'gs1-t12d0102h2-0f2cb44170f4-000000000000'
const OPENING = { settings: [[1, 65_536]], window_update: 15_663_105, priority: [], frames: [] }

/** With `odd`, a hello like no other: a cipher and an extension of these numbers. */
function row(client: string, more: object, odd: readonly number[] = []): object {
  const [cipher, type] = odd
  const strange = clientHello({
    ciphers: [0x1301, cipher ?? 0],
    extensions: [extension(0x7000 + (type ?? 0))],
  })
  const hello = odd.length === 0 ? HELLO : strange
  return {
    ...{ id: 'c1', client, label: 'any', ts: '2026-11-21T09:16:25.634Z' },
    client_hello_hex: Buffer.concat(records([hello])).toString('hex'),
    requests: [],
    ...more,
  }
}

function request(more: object): object {
  const headers = [
    ['Host', 'a.test'],
    ['User-Agent', 'x/1'],
  ]
  return { http: '1.1', method: 'GET', path: '/', headers, ...more }
}

function navigation(more: readonly (readonly [string, string])[] = []): object {
  const headers = [
    [':method', 'GET'],
    [':authority', 'a.test'],
    ['user-agent', 'Chrome/156'],
    ['sec-fetch-mode', 'navigate'],
    ['accept', 'text/html'],
    ...more,
  ]
  return { http: '2.0', method: 'GET', path: '/', headers }
}

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-signatures-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return {
    folder,
    at(name: string, text: string, mode = 0o644): string {
      const file = join(folder, name)
      mkdirSync(join(file, '..'), { recursive: true })
      writeFileSync(file, text, { mode })
      return file
    },
    async signatures(...argv: readonly string[]) {
      const io = memoryIo()
      const exitCode = await runCli(COMMANDS, ['signatures', ...argv], io)
      return { exitCode, out: io.out, err: io.err }
    },
  }
}
