import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openApiDocument } from '../../src/manage/api/openapi.ts'
import { V1, V2 } from '../../src/manage/api/operations.ts'
import type { ApiVersion } from '../../src/manage/http/version.ts'

/** What the API promises, in a file, so that a change of it is seen: `npm run openapi` writes it. */
export function goldenText(version: ApiVersion): string {
  return `${JSON.stringify(openApiDocument(version, 'https://gate.example'), null, 2)}\n`
}

export const GOLDENS: readonly (readonly [ApiVersion, URL])[] = [
  [V1, new URL('openapi.json', import.meta.url)],
  [V2, new URL('openapi-v2.json', import.meta.url)],
]

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [version, file] of GOLDENS) writeFileSync(file, goldenText(version))
