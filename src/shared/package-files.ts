import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * The package's own files. This module is two folders below the package in a checkout (src/shared/) and in a build
 * (dist/app/), so both find the same files.
 */
export const SIGNATURES_FOLDER = inPackage('signatures')
export const CONFIG_FOLDER = inPackage('config')
export const WEIGHTS_FILE = inPackage('signatures/weights.json')
export const DASHBOARD_FOLDER = inPackage('dist/dashboard')
/** Made by `npm run build`: dist/. In a checkout this is src/, where nothing is built. */
export const BUILT_FOLDER = fileURLToPath(new URL('..', import.meta.url))
export const BUILT_SIGNATURES = fileURLToPath(new URL('../signatures.json', import.meta.url))

export function version(): string {
  const packageJson: { version: string } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8'))
  return packageJson.version
}

function inPackage(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}
