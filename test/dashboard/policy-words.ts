import { readFileSync, writeFileSync } from 'node:fs'
import { TRIGGERS } from '../../src/classify/known/claims/agent-card.ts'
import { PROOF_METHODS } from '../../src/classify/verdict/proof.ts'
import { openApiDocument } from '../../src/manage/api/openapi.ts'
import { V1 } from '../../src/manage/api/operations.ts'
import type { Schemas } from '../../src/manage/http/json-schema.ts'
import { CARD_MEMBERS } from '../../src/policy/client-conditions.ts'
import { CONDITIONS } from '../../src/policy/condition.ts'
import { NO_HELLO } from '../../src/policy/fingerprint-conditions.ts'
import { VOCABULARIES } from '../../src/policy/vocabulary.ts'
import { ACTIONS } from '../config/docs.ts'

type Schema = Schemas[string]
type Word = readonly [word: string, about: string]

/** What the text editor of a policy completes, made of the policy's own code and its manual: `npm run openapi` writes it. */
export function policyWordsText(): string {
  const { schemas } = openApiDocument(V1, 'https://gate.example').components
  const policy = schemas['Policy']!.properties!
  const words = {
    POLICY_MEMBERS: membersOf(policy),
    RULE_MEMBERS: membersOf(policy['rules']!.items!.properties!),
    UNKNOWN_SIGNER: membersOf(
      policy['unknown_signer']!.anyOf!.find(({ properties }) => properties)!.properties!,
    ),
    CONDITIONS: [...CONDITIONS].map(([name, { takes, about }]): Word => [name, plain(`${about} (${takes})`)]),
    ACTIONS: ACTIONS.map(([name, does]): Word => [name, plain(does)]),
    CARD_MEMBERS: CARD_MEMBERS.map((name): Word => [name, '']),
  }
  const lists = Object.entries(words).map(([name, list]) => `export const ${name}: Words = ${shown(list)}\n`)
  const valueLists = Object.entries(values()).map(([name, list]) => `  ${name}: ${shown(list)},`)
  return [
    '// Made of the policy by `npm run openapi`: see test/dashboard/policy-words.ts.\n',
    '/** A word and what it means; empty: it says so itself. */',
    'export type Words = readonly (readonly [word: string, about: string])[]\n',
    ...lists,
    '/** What a condition, or a member of `card`, takes. Others take any text. */',
    `export const VALUES: Readonly<Record<string, Words>> = {\n${valueLists.join('\n')}\n}\n`,
  ].join('\n')
}

function values(): Readonly<Record<string, readonly Word[]>> {
  const { verdict, category, purpose, evidence } = VOCABULARIES
  const purposes = purposesInManual()
  const flag = ['true', 'false']
  return {
    ...{ verdict: named(verdict), category: named(category), evidence: named(evidence) },
    purpose: purpose.map((word) => [word, purposes.get(word)!]),
    ...{ verified: named([...flag, ...PROOF_METHODS]), hello: named(NO_HELLO) },
    ...{ listed: named(flag), forged: named(flag), campaign: named(flag), card: named(flag) },
    ...{ trigger: named(TRIGGERS), robots: named(flag) },
  }
}

/** The table of signatures/README.md. */
function purposesInManual(): ReadonlyMap<string, string> {
  const [, table = ''] = /\| purpose \| (.*?)\n\n/s.exec(readFileSync('signatures/README.md', 'utf8')) ?? []
  const rows = [...table.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)]
  return new Map(rows.map(([, word, about]) => [word!, `fetches pages ${plain(about!)}`]))
}

function named(words: readonly string[]): readonly Word[] {
  return words.map((word) => [word, ''])
}

function membersOf(properties: Readonly<Record<string, Schema>>): readonly Word[] {
  return Object.entries(properties).map(([name, { description = '' }]) => [name, plain(description)])
}

/** Without Markdown, and references to other parts of its page. */
function plain(text: string): string {
  return text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .replace('; see below', '')
}

function shown(words: readonly Word[]): string {
  return `[\n${words.map((word) => `  ${JSON.stringify(word)},`).join('\n')}\n]`
}

export const POLICY_WORDS_FILE = new URL('../../src/dashboard/pages/policy/text/words.ts', import.meta.url)

if (import.meta.main) writeFileSync(POLICY_WORDS_FILE, policyWordsText())
