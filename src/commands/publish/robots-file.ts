import { readBounded } from '../../shared/bounded-file.ts'
import { Fault } from '../../shared/fault.ts'
import { unreadable } from '../../terminal/unreadable.ts'
import { RobotsTxt } from '../../terms/robots-txt.ts'

/** Throws a Fault that names the file. Any bytes are a robots.txt. */
export async function robotsFile(file: string): Promise<RobotsTxt> {
  const bytes = await readBounded(file).catch((error) => {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  })
  return RobotsTxt.parse(bytes)
}
