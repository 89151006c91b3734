import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { cefOf, fieldText, headerText } from '../../src/manage/events/sinks/cef.ts'
import { framed, syslogMessage } from '../../src/manage/events/sinks/syslog-message.ts'
import type { EventRecord } from '../../src/store/events/events.ts'
import { newEvent } from './event-reader.ts'

const THREAT: EventRecord = {
  ...newEvent('evt_1', { type: 'threat_detected', atMs: 1_763_717_400_123, agent: 'gptbot' }),
  app: 'shop',
  ...{ number: 1, category: 'crawler', severity: 'high', confidence: 0.875 },
  data: JSON.stringify({
    ...{ reason: 'spoofed', detail: 'says\nso', severity: 'high', action: 'block', count: 12 },
    detection: {
      agent_purpose: ['archive', 'training'],
      fingerprints: { ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1', ja4s: '', ja4h: 'ge11' },
    },
    request: {
      method: 'GET',
      host: 'app.example:8443',
      path: '/a=b|c',
      address: '192.0.2.7',
      user_agent: 'x\\y',
    },
  }),
}

test('an event in CEF has the keys of its dictionary', async () => {
  assert.equal(
    cefOf(THREAT, '1.2.3'),
    String.raw`CEF:0|Gatehouse|Gatehouse|1.2.3|threat_detected|Threat detected|8|rt=1763717400123 externalId=evt_1 src=192.0.2.7 requestMethod=GET dhost=app.example request=/a\=b|c destinationServiceName=shop requestClientApplication=x\\y act=block reason=spoofed msg=says\nso cnt=12 cs1=gptbot cs1Label=agent cs2=crawler cs2Label=category cs3=t13d1516h2_8daaf6152771_e5627efa2ab1 cs3Label=ja4 cs4=ge11 cs4Label=ja4h cs6=archive,training cs6Label=purpose cfp1=0.875 cfp1Label=confidence`,
  )
  const agent: EventRecord = {
    ...{ ...THREAT, type: 'new_agent', severity: null, agent: null, category: null, confidence: null },
    app: 'default',
    data: JSON.stringify({
      agent: { id: 'gptbot', purpose: ['training'] },
      fingerprints: { ja4: 'a' },
      sighting: { address: '2001:db8::1', path: 7, host: '[2001:db8::2]', action: 'tag' },
    }),
  }
  assert.equal(
    cefOf(agent, '1|\n2'),
    String.raw`CEF:0|Gatehouse|Gatehouse|1\| 2|new_agent|New agent|1|rt=1763717400123 externalId=evt_1 c6a2=2001:db8::1 c6a2Label=Source IPv6 Address dhost=[2001:db8::2] act=tag cs3=a cs3Label=ja4 cs6=training cs6Label=purpose`,
  )
  const strange = {
    ...agent,
    data: '{"request":[],"detection":"x","count":1.5,"signature":{"fingerprint":"f"}}',
  }
  assert.match(cefOf(strange, '1'), /\|1\|rt=1763717400123 externalId=evt_1 cs5=f cs5Label=signature$/)
  assert.throws(() => cefOf({ ...agent, data: '[]' }, '1'), { code: 'STORE_DAMAGED' })
})

test('what means something to CEF is escaped, where it does', async () => {
  const table = [
    ['a|b', String.raw`a\|b`, 'a|b'],
    ['a=b', 'a=b', String.raw`a\=b`],
    ['a\\b', String.raw`a\\b`, String.raw`a\\b`],
    ['a\nb', 'a b', String.raw`a\nb`],
    ['a\r\nb', 'a b', String.raw`a\r\nb`],
    ['a\\\nb', String.raw`a\\ b`, String.raw`a\\\nb`],
    ['a\0b', 'a\ufffdb', 'a\ufffdb'],
    ['\x1b[31m', '\ufffd[31m', '\ufffd[31m'],
    ['a\x85b\u2028c', 'a\ufffdb\ufffdc', 'a\ufffdb\ufffdc'],
    ['a\tb', 'a\tb', 'a\tb'],
    ['Grüße 你好 🙂', 'Grüße 你好 🙂', 'Grüße 你好 🙂'],
    ['\ud83d', '\ufffd', '\ufffd'],
    ['', '', ''],
  ] as const
  for (const [text, header, field] of table)
    assert.deepEqual([headerText(text), fieldText(text)], [header, field], JSON.stringify(text))
  assert.equal(fieldText(`${'x'.repeat(1_022)}🙂`), `${'x'.repeat(1_022)}\ufffd`)
  assert.equal(fieldText('='.repeat(5_000)).length, 2 * 1_023)
})

test('whatever a client sends, it is one line, and read back as what it was', async () => {
  const special = [
    '|',
    '=',
    '\\',
    '\n',
    '\r',
    '\0',
    '\t',
    ' ',
    '\x85',
    '\u2028',
    '\ud83d',
    '🙂',
    'ü',
    'a',
    'src=',
  ]
  const text = fc.string({ unit: fc.constantFrom(...special), maxLength: 40 })
  fc.assert(
    fc.property(text, text, (path, agent) => {
      const request = { method: 'GET', path: `/${path}`, user_agent: `${agent}.` }
      const line = cefOf({ ...THREAT, data: JSON.stringify({ request }) }, '1.2.3')
      assert.ok(!/(?!\t)[\p{Cc}\u2028\u2029]/u.test(line))
      const read = readCef(line)
      const plain = (value: string) =>
        value.replace(/(?![\t\r\n])[\p{Cc}\u2028\u2029]/gu, '\ufffd').toWellFormed()
      assert.equal(read.header.length, 7)
      assert.equal(read.fields.get('request'), plain(request.path))
      assert.equal(read.fields.get('requestClientApplication'), plain(request.user_agent))
      assert.equal(read.fields.get('cs1'), 'gptbot')
    }),
  )
})

test('syslog has it behind the head of RFC 5424, counted in bytes', async () => {
  const message = syslogMessage(THREAT, () => 'CEF:0|Grüße').toString()
  assert.match(
    message,
    /^<131>1 2025-11-21T09:30:00\.123Z [!-~]{1,255} gatehouse \d+ threat_detected - CEF:0\|Grüße$/,
  )
  const priorities = [
    ['critical', 130],
    ['medium', 132],
    ['low', 133],
    [null, 134],
  ] as const
  for (const [severity, priority] of priorities)
    assert.ok(
      syslogMessage({ ...THREAT, severity }, () => '')
        .toString()
        .startsWith(`<${priority}>1 `),
    )
  assert.equal(framed(Buffer.from('Grüße')).toString(), '7 Grüße')
})

/** As a reader of CEF does: keys are words before an equals sign that is not escaped. */
function readCef(line: string): { readonly header: readonly string[]; readonly fields: Map<string, string> } {
  const parts = line.match(/^((?:[^|\\]|\\.)*\|){7}/su)![0]
  const header = parts.slice(0, -1).split(/(?<!\\)(?:\\\\)*\|/)
  const fields = new Map<string, string>()
  const pair = /(\w+)=((?:\\.|[^\\=])*?)(?= \w+=|$)/gsuy
  let rest = line.slice(parts.length)
  while (rest !== '') {
    pair.lastIndex = 0
    const [all, key, value] = pair.exec(rest)!
    fields.set(
      key!,
      value!.replace(/\\(.)/gsu, (_, each: string) => UNESCAPED.get(each) ?? each),
    )
    rest = rest.slice(all.length + 1)
  }
  return { header, fields }
}

const UNESCAPED: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['r', '\r'],
])
