import assert from 'node:assert/strict'
import { parseSignatureLine } from '../../src/classify/known/signature-line.ts'
import type { Signature } from '../../src/classify/known/signature.ts'
import { parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { signatureDocument, softwareDocument } from '../../src/classify/known/software-document.ts'
import { edited } from '../../src/commands/signatures/signature-edits.ts'
import { ConfigFault, placed, readSource } from '../../src/config/source.ts'
import { Fault } from '../../src/shared/fault.ts'
import { DocumentFault } from '../../src/shared/problem.ts'
import { filesIn, placesIn, textOf } from './config-target.ts'

/**
 * A file of signatures, in YAML or in lines of JSON, is a list of Software, or a fault that names places. Written again, it
 * is the same list; with signatures added to its text it is the same list and those.
 */
export function signatures(bytes: Buffer): void {
  const text = textOf(bytes)
  for (const line of text.split('\n').slice(0, LINES_MAX)) jsonLine(line)
  const list = parse(text)
  if (list === null) return
  const documents = JSON.parse(JSON.stringify(list.map(softwareDocument)))
  assert.deepEqual(parseSoftwareList(documents), list)
  assert.deepEqual(parseSoftwareList(documents, true), list)
  addTo(text, list)
}

function parse(text: string): readonly Software[] | null {
  try {
    const source = readSource(text, NAME)
    return placed(source, () => parseSoftwareList(source.value))
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    placesIn(error, text, NAME)
    return null
  }
}

/** `edited` looks itself at what has become of the text; some texts it leaves to people. */
function addTo(text: string, list: readonly Software[]): void {
  const file = { path: NAME, text, list }
  assert.equal(edited(file, () => [], []).text, text)
  try {
    const { text: more, changes } = edited(file, ({ length }) => ADDED.slice(length % 2), [NEWCOMER])
    assert.equal(parse(more)!.length, list.length + 1)
    assert.ok(changes.length > 0)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'SIGNATURES_UNEDITABLE') throw error
  }
}

function jsonLine(text: string): void {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return
  }
  try {
    const line = parseSignatureLine(value)
    const document =
      line.kind === 'software'
        ? softwareDocument(line.software)
        : { software: line.of, ...signatureDocument(line.signature) }
    assert.deepEqual(parseSignatureLine(JSON.parse(JSON.stringify(document))), line)
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error
    assert.ok(error.problems.length > 0 && error.problems.every(({ what }) => what !== ''))
  }
}

export function signaturesSeeds(): Buffer[] {
  const files = filesIn('../../signatures/').map((bytes) => bytes.toString())
  // The first few of each file.
  const pieces = files.map((text) => text.split(/\n(?=- id:)/).slice(0, 3))
  const lists = pieces.map((some) => some.join('\n'))
  const lines = lists.flatMap((text) =>
    (parse(text) ?? [])
      .slice(0, 1)
      .flatMap((software) => [
        JSON.stringify(softwareDocument(software)),
        ...software.signatures
          .slice(0, 2)
          .map((signature) => JSON.stringify({ software: software.id, ...signatureDocument(signature) })),
      ]),
  )
  return [...lists, ...lines, JSON.stringify(ALL), ...STYLES]
    .filter(({ length }) => length <= SEED_BYTES_MAX)
    .map((text) => Buffer.from(text))
}

const NAME = 'own.yaml'
const LINES_MAX = 50
const SEED_BYTES_MAX = 4000
const PROVENANCE = { source: 'the fuzzer', date: '2026-11-24' }
const [NEWCOMER, KNOWN] = parseSoftwareList([
  {
    ...{ id: 'an-unknown-id', name: 'a "name": # of {all}', kind: 'agent', category: 'custom' },
    signatures: [{ user_agent: "it's: new", ...PROVENANCE }],
  },
  {
    ...{ id: 'known', name: 'Known', kind: 'tool' },
    signatures: [
      { ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1', ...PROVENANCE, observations: 3 },
      { header: 'x-a', value: '# no comment', ...PROVENANCE },
    ],
  },
]) as [Software, Software]
const ADDED: readonly Signature[] = KNOWN.signatures
/** Of every member one. */
const ALL = [
  {
    ...{
      id: 'all',
      name: 'All',
      kind: 'agent',
      category: 'crawler',
      vendor: 'v',
      homepage: 'https://a.test/',
    },
    ...{ description: 'd', aliases: ['x', 'y'], robots_token: 'all', gives_way: 1, imitates_browsers: true },
    family: true,
    purpose: [
      { is: 'search', ...PROVENANCE },
      { is: 'agent', ...PROVENANCE },
    ],
    verification: {
      ...{ ranges_url: 'https://a.test/r.json', reverse_dns: ['.a.test'], asns: [1, 2] },
      ...{ signature_agent: 'https://a.test', ranges: { prefixes: ['192.0.2.0/24'], ...PROVENANCE } },
    },
    signatures: [
      { user_agent: 'all', match: 'whole', ...PROVENANCE },
      { header: 'x-all', value: 'a*', ...PROVENANCE },
      { header_order: ['host', 'accept'], protocol: 'h1', ...PROVENANCE },
      { ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1', decisive: true, ...PROVENANCE },
      { ja4h: 'ge11nn05enus_9ed1ff1f7b03_*_*', observations: 7, ...PROVENANCE },
      { http2: '1:65536|0|0|m,a,s,p', ...PROVENANCE },
    ],
  },
]
/** As people write lists. */
const STYLES = [
  '# nothing\n',
  '[]\n',
  '- {id: a, name: A, kind: tool, signatures: [{ja4: t13d1516h2_8daaf6152771_e5627efa2ab1, source: s, date: 2026-01-01}]}',
  '- id: a\r\n  name: A # a comment\r\n  kind: tool\r\n',
  '- id: a\n  name: >-\n    folded\n    text\n  kind: tool\n  signatures:\n    - user_agent: abc/\n      source: s\n      date: "2026-01-01"\n\n# the end\n',
  '  - id: a\n    name: A\n    kind: tool\n  - &x\n    id: b\n    name: B\n    kind: tool\n    description: |\n      a\n      b\n',
]
