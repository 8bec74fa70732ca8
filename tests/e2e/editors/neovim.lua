-- Neovim against the real server: generate, review, accept, undo, generate again, reject. FILE is the module, SERVER the
-- server's interpreter. One line per step on stdout; a failure ends with status 1.
local file = vim.env.FILE
local said, chosen = {}, {}

local function step(name, ...)
  io.stdout:write(name .. (select("#", ...) > 0 and ": " .. table.concat({ ... }, " | ") or "") .. "\n")
end

local function wait(what, seconds, condition)
  assert(vim.wait(seconds * 1000, condition, 20), what .. " did not come; said: " .. vim.inspect(said))
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr(file), 0, -1, false), "\n")
end

local function diagnostics()
  return vim.tbl_map(function(each) return tostring(each.code) end, vim.diagnostic.get(vim.fn.bufnr(file)))
end

local function lenses()
  vim.lsp.codelens.refresh({ bufnr = vim.fn.bufnr(file) })
  vim.wait(10000, function() return #vim.lsp.codelens.get(vim.fn.bufnr(file)) > 0 end, 20)
  vim.wait(300)
  return vim.tbl_map(function(lens) return lens.command.title end, vim.lsp.codelens.get(vim.fn.bufnr(file)))
end

local function at_class()
  vim.cmd.buffer(vim.fn.bufnr(file))
  vim.fn.cursor(vim.fn.search("^class ", "nw"), 7)
end

local function act(title)
  at_class()
  local found = false
  vim.lsp.buf.code_action({ apply = true, filter = function(action)
    local matches = action.title:find(title, 1, true) ~= nil
    found = found or matches
    return matches
  end })
  wait("code action " .. title, 5, function() return found end)
end

local function generate()
  act("Generate CuTe kernel")
  wait("kernel-compiled", 120, function() return vim.tbl_contains(diagnostics(), "kernel-compiled") end)
end

local function run()
  vim.lsp.handlers["window/showMessage"] = function(_, params) table.insert(said, params.message) end
  vim.ui.select = function(items, options, choose) -- questions, and code actions should more than one match
    for _, item in ipairs(items) do
      if item.title == "Accept" or item.title == "Trust" then
        table.insert(chosen, options.prompt)
        return choose(item)
      end
    end
    error("an unexpected question: " .. vim.inspect(options))
  end
  vim.lsp.config("cutesmith", {
    cmd = { vim.env.SERVER, "-m", "cutesmith_server", "serve" },
    filetypes = { "python" },
    root_markers = { "pyproject.toml" },
    init_options = { archs = { "sm_90a" }, device = "none" },
  })
  vim.lsp.enable("cutesmith")
  vim.cmd("filetype on")
  vim.cmd.edit(file)
  vim.bo.undolevels = 1000
  wait("the server", 20, function()
    local client = vim.lsp.get_clients({ bufnr = 0 })[1]
    return client and client.initialized
  end)
  local original = text()
  step("lenses", unpack(lenses()))

  generate()
  step("generated, lenses", unpack(lenses()))

  act("Review CuTe kernel")
  wait("the kernel's buffer", 10, function() return vim.fn.bufname("%"):find("_cute.py", 1, true) end)
  step("review opened", vim.fs.basename(vim.api.nvim_buf_get_name(0)))

  act("Accept CuTe kernel")
  wait("the accepted kernel", 10, function() return text():find("new_gelu_cute.supports(self, x)", 1, true) end)
  step("accepted, lenses", unpack(lenses()))

  at_class()
  vim.cmd.undo()
  assert(text() == original, "one undo does not restore the file")
  wait("the offer again", 10, function() return vim.tbl_contains(diagnostics(), "kernel-compiled") end)
  step("undone, lenses", unpack(lenses()))

  act("Reject CuTe kernel")
  wait("no diagnostics", 10, function() return #diagnostics() == 0 end)
  step("rejected, lenses", unpack(lenses()))
  step("asked", tostring(#chosen))
end

local ok, problem = pcall(run)
if not ok then
  step("FAIL", tostring(problem))
  vim.cmd("cquit 1")
end
vim.cmd("qall!")
