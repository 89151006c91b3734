import { readFileSync } from 'node:fs'

export function version(): string {
  const packageJson: { version: string } = JSON.parse(readFileSync(PACKAGE_JSON, 'utf8'))
  return packageJson.version
}

/** One folder above src/ and above dist/ alike. */
const PACKAGE_JSON = new URL('../../package.json', import.meta.url)
