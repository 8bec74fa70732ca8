import { ServerCommand } from './protocol';

/** The extension's own commands. Their ids differ from the server's, which vscode-languageclient registers itself. */
export const PaletteCommand = {
  checkHere: 'cutesmith.checkHere',
  restartServer: 'cutesmith.restartServer',
  showLog: 'cutesmith.showLog',
} as const;

/** Commands of the palette that run a server command on the class at the cursor. */
export const CLASS_COMMANDS: Readonly<Record<string, ServerCommand>> = {
  'cutesmith.generateHere': ServerCommand.generate,
  'cutesmith.acceptHere': ServerCommand.accept,
  'cutesmith.rejectHere': ServerCommand.reject,
  'cutesmith.removeHere': ServerCommand.remove,
  'cutesmith.cancelHere': ServerCommand.cancel,
  'cutesmith.reviewHere': ServerCommand.review,
  'cutesmith.pauseHere': ServerCommand.pause,
  'cutesmith.resumeHere': ServerCommand.resume,
  'cutesmith.revalidateHere': ServerCommand.revalidate,
  'cutesmith.acceptFileHere': ServerCommand.acceptFile,
  'cutesmith.improveHere': ServerCommand.improve,
  'cutesmith.watchHere': ServerCommand.watch,
  'cutesmith.unwatchHere': ServerCommand.unwatch,
};
