-- Busbar's job_submit plug-in, version @VERSION@, mode @MODE@. Written by 'busbar slurm setup'; do not edit.
-- A site with a plug-in of its own puts this text into it and calls busbar_submit and busbar_modify.

local MODE = "@MODE@"
local OFF = "@OFF@"
local MARK = "@MARK@"
local WAIT = "@WAIT@"
local ALL = @ALL@
local PARTITIONS = { @PARTITIONS@ }
local LICENCE = "@LICENCE@"
local LAYERED = "@LAYERED@"
local NODE_WATTS = @NODE_WATTS@
local NODE_CPUS = @NODE_CPUS@
local PARTITION_WATTS = { @PARTITION_WATTS@ }
local APP_WATTS = { @APP_WATTS@ }
local OPERATORS = { [0] = true, @OPERATORS@ }

-- Whether the site has given the cluster back to Slurm.
local function is_off()
  local file = io.open(OFF, "r")
  if file then
    file:close()
    return true
  end
  return false
end

-- A number, or nil if the user did not say it.
local function given(number)
  if number == nil or number >= 4294967294 or number == 65534 or number == 65535 then
    return nil
  end
  return number
end

-- The partitions of a job: those it names, or the default one.
local function partitions_of(job_desc, part_list)
  local names = {}
  if job_desc.partition and job_desc.partition ~= "" then
    for name in string.gmatch(job_desc.partition, "[^,]+") do
      names[#names + 1] = name
    end
    return names
  end
  for name, part in pairs(part_list) do
    if part.flag_default == 1 then
      names[1] = part.name or name
    end
  end
  return names
end

-- How many of the partitions are Busbar's.
local function count_ours(names)
  local count = 0
  for _, name in ipairs(names) do
    if ALL or PARTITIONS[name] then
      count = count + 1
    end
  end
  return count
end

-- The words to Busbar in a comment, by key; or nil and what is wrong. A comment without them has none.
local function read_words(comment)
  local words = {}
  for part in string.gmatch((comment or "") .. ";", "([^;]*);") do
    local first, rest = string.match(part, "^%s*(%S+)(.*)$")
    if first == "busbar" then
      for word in string.gmatch(rest, "%S+") do
        local key, value = string.match(word, "^(%l+)=(.*)$")
        local wrong = nil
        if word == "malleable" then
          key, value = "malleable", true
        elseif key == "app" then
          if #value > 64 or not string.match(value, "^[%w%._%-%+]+$") then
            wrong = "does not name an application; use letters, digits and . _ - +, such as app=lulesh"
          end
        elseif key == "slowdown" then
          local share = string.match(value, "^(%d+)%%$") or string.match(value, "^(%d+%.%d+)%%$")
          if not share or tonumber(share) > 1000 then
            wrong = "is no slowdown; use a percentage from 0% to 1000%, such as slowdown=10%"
          end
        elseif key == "nodes" then
          local low, high = string.match(value, "^(%d+)%-(%d+)$")
          if not low then
            low = string.match(value, "^%d+$")
            high = low
          end
          if not low or tonumber(low) < 1 or tonumber(high) < tonumber(low) or tonumber(high) > 999999 then
            wrong = "is no number of nodes; use one number or two, such as nodes=4-16"
          else
            words.fewest, words.most = tonumber(low), tonumber(high)
          end
        else
          wrong = "is nothing that Busbar knows; it knows app=NAME, slowdown=PERCENT%, nodes=MIN-MAX and malleable"
        end
        if not wrong and words[key] ~= nil then
          wrong = "says something a second time; say it once"
        end
        if wrong then
          return nil, "busbar: '" .. word .. "' in the comment " .. wrong
        end
        words[key] = value
      end
      return words
    end
  end
  return words
end

-- A comment without the part that asks Busbar to wait.
local function without_wait(comment)
  local parts = {}
  for part in string.gmatch((comment or "") .. ";", "([^;]*);") do
    if string.match(part, "^%s*(.-)%s*$") ~= WAIT then
      parts[#parts + 1] = part
    end
  end
  return (string.gsub(table.concat(parts, ";"), "^%s*;*%s*", ""))
end

local function with_wait(comment)
  local rest = without_wait(comment)
  if rest == "" then
    return WAIT
  end
  return rest .. "; " .. WAIT
end

-- How many nodes a job may get at most, as far as it says.
local function most_nodes(job_desc)
  local nodes = given(job_desc.max_nodes) or given(job_desc.min_nodes)
  if nodes and nodes > 0 then
    return nodes
  end
  local tasks = given(job_desc.num_tasks) or 1
  if tasks < 1 then
    tasks = 1
  end
  if NODE_CPUS > 0 then
    local cpus = given(job_desc.cpus_per_task) or 1
    return math.max(1, math.ceil(tasks * cpus / NODE_CPUS))
  end
  return tasks
end

local function watts_per_node(names, words)
  if words.app and APP_WATTS[words.app] then
    return APP_WATTS[words.app]
  end
  local watts = 0
  for _, name in ipairs(names) do
    watts = math.max(watts, PARTITION_WATTS[name] or NODE_WATTS)
  end
  return watts > 0 and watts or NODE_WATTS
end

-- The licences of a job without Busbar's.
local function other_licences(licences)
  local kept = {}
  for part in string.gmatch(licences or "", "[^,]+") do
    local name = string.match(part, "^[^:=@(]*")
    if name ~= LICENCE and (LAYERED == "" or name ~= LAYERED) then
      kept[#kept + 1] = part
    end
  end
  return kept
end

function busbar_submit(job_desc, part_list, submit_uid)
  if MODE == "watch" or is_off() then
    return slurm.SUCCESS
  end
  local names = partitions_of(job_desc, part_list)
  local ours = count_ours(names)
  if ours == 0 then
    return slurm.SUCCESS
  end
  if ours < #names then
    slurm.log_user("busbar: the job names partitions that Busbar looks after and others; name only the ones or the others")
    return slurm.ERROR
  end
  local words, wrong = read_words(job_desc.comment)
  if not words then
    slurm.log_user("%s", wrong)
    return slurm.ERROR
  end
  if given(job_desc.het_job_offset) then
    slurm.log_user("busbar: heterogeneous jobs are not handled; submit the parts as jobs of their own")
    return slurm.ERROR
  end
  if MODE == "steer" then
    if OPERATORS[submit_uid] and string.match(job_desc.dependency or "", "^expand:") then
      -- Busbar itself gives a running job more nodes.
      return slurm.SUCCESS
    end
    if job_desc.priority == 0 then
      -- The user's own hold becomes a wish.
      job_desc.comment = with_wait(job_desc.comment)
    end
    job_desc.priority = 0
    job_desc.admin_comment = MARK
    job_desc.shared = 0
    return slurm.SUCCESS
  end
  local nodes = most_nodes(job_desc)
  local of_node = watts_per_node(names, words)
  local watts = nodes * of_node
  local licences = other_licences(job_desc.licenses)
  licences[#licences + 1] = string.format("%s:%d", LICENCE, watts)
  if LAYERED ~= "" then
    -- Slurm counts this for each node.
    licences[#licences + 1] = string.format("%s:%d", LAYERED, of_node)
  end
  job_desc.licenses = table.concat(licences, ",")
  -- No more nodes than are paid for, and no others' jobs on them.
  job_desc.max_nodes = nodes
  job_desc.min_nodes = math.min(given(job_desc.min_nodes) or nodes, nodes)
  job_desc.shared = 0
  slurm.log_user("busbar: the job counts with %d W", watts)
  return slurm.SUCCESS
end

function busbar_modify(job_desc, job_rec, part_list, modify_uid)
  if MODE == "watch" or OPERATORS[modify_uid] or is_off() then
    return slurm.SUCCESS
  end
  local names = partitions_of({ partition = job_rec.partition }, part_list)
  if count_ours(names) == 0 then
    if job_desc.partition and count_ours(partitions_of(job_desc, part_list)) > 0 then
      slurm.log_user("busbar: a job cannot be moved into a partition that Busbar looks after; submit it there")
      return slurm.ERROR
    end
    return slurm.SUCCESS
  end
  if job_desc.partition and count_ours(partitions_of(job_desc, part_list)) == 0 then
    slurm.log_user("busbar: the job cannot be moved out of Busbar's partitions; submit it again")
    return slurm.ERROR
  end
  if job_desc.comment then
    local words, wrong = read_words(job_desc.comment)
    if not words then
      slurm.log_user("%s", wrong)
      return slurm.ERROR
    end
  end
  if MODE == "steer" then
    if job_rec.admin_comment ~= MARK then
      return slurm.SUCCESS
    end
    if job_desc.req_nodes then
      slurm.log_user("busbar: Busbar chooses the nodes of this job")
      return slurm.ERROR
    end
    if job_desc.priority ~= nil and job_desc.priority ~= slurm.NO_VAL then
      -- Holding and releasing are wishes to Busbar, which starts the job when there is power for it.
      local comment = job_desc.comment or job_rec.comment
      if job_desc.priority == 0 then
        job_desc.comment = with_wait(comment)
      else
        local rest = without_wait(comment)
        -- An empty comment would be taken for none given.
        job_desc.comment = rest ~= "" and rest or " "
      end
      job_desc.priority = slurm.NO_VAL
    end
    return slurm.SUCCESS
  end
  if job_desc.licenses or given(job_desc.min_nodes) or given(job_desc.max_nodes) then
    slurm.log_user("busbar: the nodes and licences of a job decide about its watts; submit it again to change them")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  return busbar_submit(job_desc, part_list, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return busbar_modify(job_desc, job_rec, part_list, modify_uid)
end

slurm.log_info("busbar: job_submit.lua version @VERSION@, mode %s", MODE)
return slurm.SUCCESS
