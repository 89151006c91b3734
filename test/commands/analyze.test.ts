import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { writeLargeCapture } from '../../bench/capture/large-capture.ts'
import type { Finding } from '../../src/capture/finding.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import type { Io } from '../../src/terminal/io.ts'
import {
  ethernet,
  interfaceBlock,
  enhancedPacket,
  ipv6,
  pcap,
  pcapng,
  pcapParts,
  secretsBlock,
  Talk,
  tcp,
} from '../capture/packet-builder.ts'
import { type Recording, record } from '../capture/recorded-tls.ts'
import { clientHello, records, serverName } from '../vectors/hello-builder.ts'
import { memoryIo } from './memory-io.ts'
import { GATEHOUSE, skipped } from '../e2e/programs.ts'

const RECORDING = await record({ client: { servername: 'example.test', ALPNProtocols: ['h2', 'http/1.1'] } })
const TALK = talkOf(RECORDING)
const REQUEST = new Talk({ from: 50_001, to: 80 })
  .open()
  .client('GET /cart?id=7 HTTP/1.1\r\nHost: a\r\n\r\n')
  .close()
const FRAMES = [...TALK.frames, ...REQUEST.frames]
/** In which frames they are. */
const HELLO_FRAME = 3 + Math.ceil(helloLength(RECORDING) / 1400)
const REQUEST_FRAME = TALK.frames.length + 4

/** `{"kind":…` as one finding is printed: what programs rely on is that these names and types stay. */
const TLS_LINE =
  /^\{"kind":"tls","transport":"tcp","frame":\d+,"src":"192\.0\.2\.1","src_port":50000,"dst":"198\.51\.100\.2","dst_port":443,"sni":"example\.test","alpn":\["h2","http\/1\.1"\],"ja4":"t13d\w{6}_\w{12}_\w{12}","ja4_r":"t13d[^"]+","ja4_o":"t13d\w{6}_\w{12}_\w{12}","ja4_ro":"t13d[^"]+","ja4_stable":"gs1-[^"]+","ja4_later":\[\],"ja4s":"t13\w{4}_\w{4}_\w{12}","ja4s_r":"t13[^"]+","ja4s_later":\[\],"hello_retry_request":false,"ja4x":\[\],"ja4x_r":\[\],"ja4x_client":\[\]\}$/
const HTTP_LINE =
  /^\{"kind":"http","transport":"tcp","frame":\d+,"src":"192\.0\.2\.1","src_port":50001,"dst":"198\.51\.100\.2","dst_port":80,"http":"http1","method":"GET","path":"\/cart\?id=7","ja4h":"ge11nn010000_\w{12}_\w{12}_\w{12}","ja4h_r":"ge11nn010000_Host__"\}$/

let saved = 0

test('analyze --json: a line each, with the names and the order that are promised', async (t) => {
  const { exitCode, out, err } = await analyze(['--json', save(t, pcap(FRAMES))])
  assert.deepEqual([exitCode, err], [0, ''])
  const [tls, http, ...rest] = out.split('\n')
  assert.match(tls!, TLS_LINE)
  assert.match(http!, HTTP_LINE)
  assert.deepEqual(rest, [''])
  assert.deepEqual([JSON.parse(tls!).frame, JSON.parse(http!).frame], [HELLO_FRAME, REQUEST_FRAME])
})

test('analyze: a table for people', async (t) => {
  const { exitCode, out, err } = await analyze([save(t, pcap(FRAMES))])
  const [found] = lines((await analyze(['--json', save(t, pcap(TALK.frames))])).out) as [
    Finding & { kind: 'tls' },
  ]
  assert.deepEqual([exitCode, err], [0, ''])
  assert.equal(
    out,
    `  FRAME  KIND   CLIENT                 SERVER                 NAME
${String(HELLO_FRAME).padStart(7)}  tls    192.0.2.1:50000        198.51.100.2:443       example.test
         ja4        ${found.ja4}
         ja4s       ${found.ja4s}
${String(REQUEST_FRAME).padStart(7)}  http1  192.0.2.1:50001        198.51.100.2:80        GET /cart?id=7
         ja4h       ge11nn010000_4a823118b9ba_000000000000_000000000000
1 tls, 1 http1 in ${FRAMES.length} frames
`,
  )
})

test('analyze: the table stays within 80 columns, and shows nothing that a terminal obeys', async (t) => {
  const nasty = 'a\x1b[2J\x07\x9b31m\u202e\u2066\u2028\ufeff\ud83d\ude00漢字'
  const hello = (name: string): Buffer =>
    Buffer.concat(records([clientHello({ ciphers: [0x1301], extensions: [serverName(name)] })]))
  const request = (path: string): Buffer => Buffer.from(`GET /${path} HTTP/1.1\r\n\r\n`)
  const said = [
    hello('short.test'),
    hello(''),
    hello(`${'long.'.repeat(30)}test`),
    hello('\x1b]0;title\x07\x9b1m.test'),
    request(nasty),
    request('漢'.repeat(60)),
    request('x'.repeat(13)),
    request('x'.repeat(14)),
    request('\u{1f600}'.repeat(60)),
  ]
  const full = { source: '2001:db8:1111:2222:3333:4444:5555:6666', destination: '2001:db8:0:0:0:0:0:1' }
  const frames = said.flatMap((data, i) => [
    ...new Talk({ from: 1000 + i, source: '192.100.200.101', destination: '198.100.200.101' }).client(data)
      .frames,
    ethernet(ipv6(tcp({ from: 1000 + i, to: 65_535, data }), full)),
    ethernet(
      ipv6(tcp({ from: 1000 + i, data }), { source: '2001:db8:0:0:0:0:0:2', destination: full.destination }),
    ),
  ])
  const { out } = await analyze([save(t, pcap(frames))])
  const rows = out.trimEnd().split('\n')
  assert.equal(rows.filter((row) => /^ +\d+ {2}\w/.test(row)).length, frames.length)
  for (const row of rows) assert.ok(terminalColumns(row) <= 80, `${terminalColumns(row)}: ${row}`)
  assert.doesNotMatch(out.replaceAll('\n', ''), /[\p{C}\p{Zl}\p{Zp}]/u)
  assert.ok(out.includes('GET /a·[2J··31m'), out)
  assert.ok(out.includes('[2001:db8:1111:2222:3333:4444:5555:6666]:1000'))
  // Up to the last column, and not beyond.
  assert.ok(out.includes(`192.100.200.101:1006   198.100.200.101:443    GET /${'x'.repeat(13)}\n`))
  assert.ok(
    out.includes(`192.100.200.101:1007   198.100.200.101:443\n         name       GET /${'x'.repeat(14)}\n`),
  )
  // On a wider terminal it stands in one row.
  const wide = await analyze([save(t, pcap(frames))], { columns: 250 })
  assert.ok(wide.out.includes(`${'long.'.repeat(30)}test`))
})

test('analyze: what there is to say of nothing', async (t) => {
  assert.deepEqual(await analyze([save(t, pcap([]))]), {
    exitCode: 0,
    out: 'no TLS handshake and no HTTP request in 0 frames\n',
    err: '',
  })
  assert.equal((await analyze(['--json', save(t, pcap([]))])).out, '')
})

test('analyze: several files, each finding with its own', async (t) => {
  const [one, two] = [save(t, pcap(TALK.frames)), save(t, pcap(REQUEST.frames))]
  const json = await analyze(['--json', one, two])
  assert.deepEqual(
    lines(json.out).map((found) => [
      Object.keys(found)[0],
      (found as unknown as { file: string }).file,
      found.kind,
    ]),
    [
      ['file', one, 'tls'],
      ['file', two, 'http'],
    ],
  )
  const { exitCode, out, err } = await analyze([one, join(one, 'none'), two])
  assert.equal(exitCode, 1)
  assert.equal(err, `gatehouse analyze: ${join(one, 'none')}: no such file\n`)
  assert.deepEqual(
    out.split('\n').filter((line) => line.startsWith('/') || line.includes(' in ')),
    [one, `1 tls in ${TALK.frames.length} frames`, two, `1 http1 in ${REQUEST.frames.length} frames`],
  )
})

test('analyze: compressed files, and standard input in any pieces', async (t) => {
  const plain = pcap(FRAMES)
  const expected = (await analyze(['--json', save(t, plain)])).out
  assert.equal(lines(expected).length, 2)
  for (const bytes of [plain, gzipSync(plain), zstdCompressSync(plain)]) {
    assert.deepEqual(await analyze(['--json', save(t, bytes)]), { exitCode: 0, out: expected, err: '' })
    const pieces = [bytes.subarray(0, 1), bytes.subarray(1, 3), bytes.subarray(3)]
    assert.equal((await analyze(['--json', '-'], { stdin: Readable.from(pieces) })).out, expected)
  }
})

test('analyze: prints what could be read of a truncated capture, then an error', async (t) => {
  const whole = pcap(FRAMES)
  const [header, ...parts] = pcapParts(FRAMES) as [Buffer, ...Buffer[]]
  const read = TALK.frames.length
  const place = Buffer.concat([header, ...parts.slice(0, read)]).length
  const lying = Buffer.from(whole)
  lying.writeUInt32LE(0xffff_ffff, place + 8)
  const packed = gzipSync(whole)
  const half: readonly (readonly [Buffer, string | RegExp])[] = [
    [
      whole.subarray(0, place + 20),
      `truncated at byte ${place}: the file ends inside a record, after ${read} frames`,
    ],
    [lying, `corrupt at byte ${place}: frame ${read + 1} claims 4294967295 bytes, after ${read} frames`],
    [packed.subarray(0, -20), /^the gzip data ends early or is corrupt: .+, after \d+ frames$/],
    [
      zstdCompressSync(whole).subarray(0, -20),
      /^the zstd data ends early or is corrupt: .+, after \d+ frames?$/,
    ],
    [pcapParts([])[0]!.subarray(0, 10), 'truncated at byte 0: the file ends inside a record, after 0 frames'],
  ]
  for (const [bytes, expected] of half) {
    const file = save(t, bytes)
    for (const given of [[file], ['--json', file]]) {
      const { exitCode, out, err } = await analyze(given)
      const error = err.replace(`gatehouse analyze: ${file}: `, '').replace('\n', '')
      if (typeof expected === 'string') assert.equal(error, expected)
      else assert.match(error, expected)
      assert.equal(exitCode, 1)
      if (bytes.length > place && bytes !== packed) assert.ok(out.includes('example.test'), error)
    }
  }
})

test('analyze: reports a file that is not a capture, and prints nothing else', async (t) => {
  const folder = folderFor(t)
  const nones: readonly (readonly [file: string, reason: string])[] = [
    [join(folder, 'missing'), 'no such file'],
    [folder, 'is a folder'],
    [save(t, Buffer.alloc(0)), 'the file is empty'],
    [save(t, Buffer.from('key: value\n')), 'neither pcap nor pcapng'],
    [save(t, gzipSync('key: value\n')), 'neither pcap nor pcapng'],
  ]
  for (const [file, reason] of nones) {
    assert.deepEqual(await analyze([file]), {
      exitCode: 1,
      out: '',
      err: `gatehouse analyze: ${file}: ${reason}\n`,
    })
  }
})

test('analyze: used wrongly', async (t) => {
  const file = save(t, pcap([]))
  for (const [given, problem] of [
    [[], 'FILE is missing'],
    [['--jsn', file], 'unknown option --jsn (did you mean "--json"?)'],
    [['--keylog', '--json', file], '--keylog needs a value: FILE'],
    [['--follow', file, file], '--follow needs exactly one FILE'],
  ] as const) {
    assert.deepEqual(await analyze(given), {
      exitCode: 2,
      out: '',
      err: `gatehouse analyze: ${problem}; see "gatehouse analyze --help"\n`,
    })
  }
})

test('analyze: without JA4+, by the option or the setting', async (t) => {
  const file = save(t, pcap(FRAMES))
  const setting = (value: string) => ({ env: { GATEHOUSE_FINGERPRINTS_JA4PLUS: value } })
  for (const [given, settings] of [
    [['--no-ja4plus'], {}],
    [[], setting('false')],
    [['--no-ja4plus'], setting('true')],
  ] as const) {
    const [tls, http] = lines((await analyze(['--json', ...given, file], settings)).out)
    assert.ok(tls?.kind === 'tls' && http?.kind === 'http')
    assert.deepEqual([tls.ja4s, tls.ja4s_r, tls.ja4x, http.ja4h, http.ja4h_r], [null, null, [], null, null])
    assert.match(tls.ja4, /^t13d/)
    assert.doesNotMatch((await analyze([...given, file], settings)).out, /ja4[shx]/)
  }
  assert.match((await analyze([file], setting('true'))).out, /ja4s/)
  const { exitCode, err } = await analyze([file], setting('no'))
  assert.deepEqual(
    [exitCode, err],
    [1, 'gatehouse analyze: GATEHOUSE_FINGERPRINTS_JA4PLUS is "no"; expected true or false\n'],
  )
})

test('analyze --keylog: what the keys open is read too', async (t) => {
  const capture = save(t, pcap(TALK.frames))
  const opened = ['http http1 POST /upload', 'tls example.test']
  const cases: readonly (readonly [
    name: string,
    file: string,
    keyLog: Buffer | null,
    seen: readonly string[],
    err: RegExp,
  ])[] = [
    ['the right one', capture, Buffer.from(RECORDING.keyLog), opened, /^$/],
    ['without its last line end', capture, Buffer.from(RECORDING.keyLog.trimEnd()), opened, /^$/],
    [
      'of another connection',
      capture,
      Buffer.from(RECORDING.keyLog.replaceAll(/ [0-9a-f]{4}/g, ' 0000')),
      opened.slice(1),
      /^$/,
    ],
    ['no key log', capture, Buffer.alloc(1000, 0xff), opened.slice(1), /has no secrets to decrypt with\n$/],
    ['none, but one in the file', save(t, secretsInside('before')), null, opened, /^$/],
    ['none, but one at its end', save(t, secretsInside('after')), null, opened, /^$/],
    ['none, but one in a packed file', save(t, gzipSync(secretsInside('after'))), null, opened, /^$/],
  ]
  for (const [name, file, keyLog, seen, errors] of cases) {
    const given = keyLog === null ? [] : ['--keylog', save(t, keyLog)]
    const { exitCode, out, err } = await analyze(['--json', ...given, file])
    const found = lines(out).map((each) =>
      each.kind === 'tls' ? `tls ${each.sni}` : `http ${each.http} ${each.method} ${each.path}`,
    )
    assert.deepEqual([exitCode, found], [0, seen], name)
    assert.match(err, errors, name)
    const tls = lines(out).find((each) => each.kind === 'tls')
    assert.equal(tls?.ja4x.length, seen.length - 1, name)
  }
})

test('analyze --keylog: one that cannot be read', async (t) => {
  const capture = save(t, pcap(TALK.frames))
  const folder = folderFor(t)
  for (const [file, reason] of [
    [join(folder, 'none'), 'no such file'],
    [folder, 'is a folder'],
  ] as const) {
    assert.deepEqual(await analyze(['--keylog', file, capture]), {
      exitCode: 1,
      out: '',
      err: `gatehouse analyze: --keylog ${file}: ${reason}\n`,
    })
  }
})

test('analyze --follow: a growing file, with a growing key log, until interrupted', async (t) => {
  const bytes = pcap([...REQUEST.frames, ...TALK.frames])
  const early = pcap(REQUEST.frames).length - 10
  const capture = save(t, bytes.subarray(0, early))
  const keyLog = save(t, Buffer.alloc(0))
  const running = start('analyze', '--json', '--follow', '--keylog', keyLog, capture)
  await running.until('"path":"/cart?id=7"')
  appendFileSync(keyLog, RECORDING.keyLog)
  appendFileSync(capture, bytes.subarray(early, -7))
  await running.until('"path":"/upload"')
  // The end of the connection is not all there: its handshake is said when nothing more will come.
  running.child.kill('SIGINT')
  const { exitCode, out, err } = await running.ended
  assert.deepEqual([exitCode, err], [0, ''])
  assert.deepEqual(
    lines(out).map(({ kind }) => kind),
    ['http', 'http', 'tls'],
  )
})

test('analyze --follow: a pipe, until interrupted or until it ends', async () => {
  for (const interrupted of [true, false]) {
    const running = start('analyze', '--follow', '-')
    running.child.stdin!.write(pcap(FRAMES))
    await running.until('GET /cart?id=7')
    if (interrupted) running.child.kill('SIGINT')
    else running.child.stdin!.end()
    const { exitCode, out, err } = await running.ended
    assert.deepEqual([exitCode, err], [0, ''])
    assert.ok(out.endsWith(`1 tls, 1 http1 in ${FRAMES.length} frames\n`), out)
  }
})

test('analyze: started in a shell', async (t) => {
  const many = Array.from(
    { length: 2000 },
    (_, i) => new Talk({ from: 1 + i }).client('GET / HTTP/1.1\r\n\r\n').frames,
  )
  const file = save(t, pcap(many.flat()))

  t.test('a reader that closes early is not a failure', async () => {
    const { status, stdout, stderr } = bash(
      'set -o pipefail; gatehouse analyze --json "$1" | head -n 1',
      file,
    )
    assert.deepEqual([status, stderr, stdout.split('\n').length], [0, '', 2])
  })

  t.test('a pipe that is named like a file', async () => {
    const { status, stdout, stderr } = bash('gatehouse analyze <(cat "$1")', file)
    assert.deepEqual([status, stderr], [0, ''])
    assert.ok(stdout.endsWith('2000 http1 in 2000 frames\n'))
  })

  t.test('a closed standard input', async () => {
    const { status, stderr } = bash('gatehouse analyze - <&-')
    assert.deepEqual([status, stderr], [1, 'gatehouse analyze: -: the file is empty\n'])
  })
})

test('analyze: a large capture, in bounded memory, with a progress bar on a terminal', async (t) => {
  const file = join(folderFor(t), 'large.pcap')
  const chrome: { stream_hex: string } = JSON.parse(readFileSync('bench/micro/chrome-hello.json', 'utf8'))
  await writeLargeCapture(file, 200 * 1024 * 1024, Buffer.from(chrome.stream_hex, 'hex'))

  t.test('bounded memory', async () => {
    const peak = `data:text/javascript,process.on('exit',()=>console.error(process.resourceUsage().maxRSS))`
    const { status, stdout, stderr } = spawnSync(
      'env',
      [...NODE, '--import', peak, GATEHOUSE, 'analyze', file],
      {
        encoding: 'utf8',
        maxBuffer: 64 * 1024 * 1024,
      },
    )
    assert.equal(status, 0)
    assert.match(stdout.slice(-60), /\n\d+ http1, \d+ tls in \d+ frames\n$/)
    assert.ok(Number(stderr) > 0 && Number(stderr) < 400 * 1024, `${stderr} KiB`)
  })

  t.test('a progress bar', { skip: skipped('script') }, async () => {
    const command = `env ${NODE.join(' ')} ${GATEHOUSE} analyze --json ${file} > /dev/null`
    const { status, stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { encoding: 'utf8' })
    assert.equal(status, 0, stdout)
    const drawn = stdout.split('\r').filter((each) => each.includes('%'))
    assert.ok(drawn.length > 0, JSON.stringify(stdout))
    for (const bar of drawn) {
      assert.match(bar, /^ [█░]{40} \d{1,3} % of 200\.\d MiB/)
      assert.ok(bar.endsWith('MiB\x1b[K'))
    }
    // And it leaves nothing behind.
    assert.ok(stdout.endsWith('\r\x1b[K'), JSON.stringify(stdout.slice(-100)))
  })
})

interface Outcome {
  readonly exitCode: number | null
  readonly out: string
  readonly err: string
}

async function analyze(given: readonly string[], settings: Partial<Io> = {}): Promise<Outcome> {
  const io = memoryIo('', settings)
  const exitCode = await runCli(COMMANDS, ['analyze', ...given], io)
  return { exitCode, out: io.out, err: io.err }
}

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Outcome>
  /** Waits for its output to have this in it. */
  until(text: string): Promise<void>
}

function start(...argv: readonly string[]): Running {
  const child = spawn('env', [...NODE, GATEHOUSE, ...argv])
  let out = ''
  let err = ''
  child.stdout.on('data', (bytes) => (out += bytes))
  child.stderr.on('data', (bytes) => (err += bytes))
  return {
    child,
    ended: once(child, 'close').then(([exitCode]) => ({ exitCode, out, err })),
    until: async (text) => {
      for (let waited = 0; !out.includes(text); waited += 20) {
        assert.ok(waited < 10_000 && child.exitCode === null, `${text} is not in ${out}${err}`)
        await sleep(20)
      }
    },
  }
}

function bash(script: string, ...given: readonly string[]) {
  const gatehouse = `gatehouse() { env ${NODE.join(' ')} ${GATEHOUSE} "$@"; }`
  return spawnSync('bash', ['--norc', '-c', `${gatehouse}\n${script}`, 'bash', ...given], {
    encoding: 'utf8',
  })
}

function lines(out: string): Finding[] {
  return out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

function talkOf({ chunks }: Recording): Talk {
  const talk = new Talk().open()
  for (const { fromClient, bytes } of chunks) talk[fromClient ? 'client' : 'server'](bytes)
  return talk.close()
}

function helloLength({ chunks }: Recording): number {
  const turn = chunks.findIndex(({ fromClient }) => !fromClient)
  return chunks.slice(0, turn).reduce((length, { bytes }) => length + bytes.length, 0)
}

function secretsInside(where: 'before' | 'after'): Buffer {
  const packets = TALK.frames.map((frame) => enhancedPacket(frame))
  const secrets = [secretsBlock(RECORDING.keyLog.trimEnd())]
  const blocks = where === 'before' ? [...secrets, ...packets] : [...packets, ...secrets]
  return pcapng([interfaceBlock(), ...blocks])
}

function save(t: Test, bytes: Uint8Array): string {
  const file = join(folderFor(t), `${++saved}.pcap`)
  writeFileSync(file, bytes)
  return file
}

function folderFor(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-analyze-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Two for each East Asian character or emoji. */
function terminalColumns(text: string): number {
  return [...text].reduce((columns, character) => columns + (WIDE.test(character) ? 2 : 1), 0)
}

const WIDE = /[\u2e80-\ud7a3]|\p{Emoji_Presentation}/u
/** For `env`: tap gives every child a NODE_OPTIONS of its own, which among other things listens for signals. */
const NODE = ['-u', 'NODE_OPTIONS', '-u', 'FORCE_COLOR', process.execPath]
