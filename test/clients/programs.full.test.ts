import { PROGRAMS } from './clients.ts'
import { drive } from './drive.ts'

for (const client of PROGRAMS) drive(client)
