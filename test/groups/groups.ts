import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the files are that tap runs, one for each group. */
export const GROUPS_FOLDER = '.tap/groups'
/** Enough to share what they load, few enough that the groups spread over the processors. */
const FILES_MAX = 12
/** Test files that share a process, by name of the group: at most twelve of one folder. */
export function groupsOf(files: readonly string[]): Map<string, string[]> {
  const folders = Map.groupBy(files, folderOf)
  const groups = new Map<string, string[]>()
  for (const [folder, members] of folders) {
    const count = Math.ceil(members.length / FILES_MAX)
    for (let group = 0; group < count; group++)
      groups.set(
        `${folder.replaceAll('/', '-')}-${group + 1}`,
        members.filter((_, index) => index % count === group),
      )
  }
  return groups
}

/** Writes the files that tap runs for them, and returns their paths. */
export function writeGroups(files: readonly string[]): string[] {
  rmSync(GROUPS_FOLDER, { recursive: true, force: true })
  mkdirSync(GROUPS_FOLDER, { recursive: true })
  return [...groupsOf(files)].map(([name, members]) => {
    const path = join(GROUPS_FOLDER, `${name}.mjs`)
    const list = JSON.stringify(members, null, 2)
    writeFileSync(
      path,
      `import { runFiles } from '../../test/groups/run-files.ts'\n\nawait runFiles(${list})\n`,
    )
    return path
  })
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/'))
}
