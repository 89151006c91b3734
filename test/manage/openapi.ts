import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openApiDocument } from '../../src/manage/api/openapi.ts'
import { OPERATIONS } from '../../src/manage/api/operations.ts'

/** What the API promises, in a file, so that a change of it is seen: `npm run openapi` writes it. */
export function goldenText(): string {
  return `${JSON.stringify(openApiDocument(OPERATIONS, 'https://gate.example'), null, 2)}\n`
}

export const GOLDEN = new URL('openapi.json', import.meta.url)

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(GOLDEN, goldenText())
